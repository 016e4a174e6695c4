#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

// An invariant of Sluice itself does not hold: a defect of the program, not of its input.
class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The place is the caller's. (std::source_location would do, but clang knows it only from 16 on.)
[[noreturn]] inline void fail_check(std::string_view what, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  throw InvariantError(std::string(file) + ":" + std::to_string(line) + ": " + std::string(what));
}

inline void check(bool holds, std::string_view what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    fail_check(what, file, line);
  }
}

}  // namespace sluice
