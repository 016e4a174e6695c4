#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice {

// The connections between two ranks that have broken while both still reach the hub. One of the two
// is given up, if the others can go on without it: the one with most broken connections, and of
// several the highest.
class Cuts {
 public:
  // What has become of one of them.
  struct Verdict {
    std::size_t rank;   // is given up, or cannot be
    std::size_t other;  // the other end of a broken connection
    bool ends = false;  // neither can be given up
  };

  void add(std::size_t one, std::size_t other, Time now);
  // It is not there any more.
  void forget(std::size_t rank);
  // The next one, once all who have something to tell have had time for it. Whoever is given up is
  // to be forgotten.
  std::optional<Verdict> settle(Time now,
                                const std::function<bool(std::size_t rank)>& is_outlived) const;

 private:
  std::vector<std::pair<std::size_t, std::size_t>> all_;  // the lower rank first, each once
  Time since_{0};                                         // of the first of them
};

}  // namespace sluice
