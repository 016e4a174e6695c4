#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

// An invariant of Sluice does not hold: a bug in the program, not an error in its input.
class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Reports the caller's position. (std::source_location would do this, but needs clang 16.)
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
