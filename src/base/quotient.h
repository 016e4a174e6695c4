#pragma once

#include <cstddef>

namespace sluice {

// a / b, for b that is mostly 1: a processor divides for much longer than it foresees a branch.
constexpr std::size_t quotient(std::size_t a, std::size_t b) { return b == 1 ? a : a / b; }

}  // namespace sluice
