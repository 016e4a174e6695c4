#pragma once

#include <deque>
#include <string>
#include <utility>

namespace sluice {

// What rank 0 told all others before training began, by name. A process that joins later hears it
// from here, and so begins as they did.
class Beginning {
 public:
  Beginning() = default;
  explicit Beginning(const std::string& text);

  void note(const std::string& what, const std::string& told) { told_.emplace_back(what, told); }
  // The next one of this name. Throws std::runtime_error if there is none.
  std::string take(const std::string& what);

  std::string text() const;

 private:
  std::deque<std::pair<std::string, std::string>> told_;
};

}  // namespace sluice
