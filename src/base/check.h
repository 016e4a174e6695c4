#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

// An invariant of Sluice itself does not hold: a defect of the program, not of its input.
class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail_check(std::string_view what,
                                    std::source_location where = std::source_location::current()) {
  throw InvariantError(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                       std::string(what));
}

inline void check(bool holds, std::string_view what,
                  std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    fail_check(what, where);
  }
}

}  // namespace sluice
