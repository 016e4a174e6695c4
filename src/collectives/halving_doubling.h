#pragma once

#include <cstddef>

#include "collectives/plan.h"

namespace sluice {

// 2 log2(n) rounds with as little traffic as a ring: for long messages among many ranks.
Plan halving_doubling(std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
