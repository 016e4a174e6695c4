#pragma once

#include <stdexcept>

namespace sluice {

// The program has failed, and has said why.
struct Aborted : std::runtime_error {
  explicit Aborted(int code) : std::runtime_error("the program has failed"), code(code) {}

  int code;
};

// The processes make different calls.
struct Disagreement : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace sluice
