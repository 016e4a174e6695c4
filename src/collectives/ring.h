#pragma once

#include <cstddef>

#include "collectives/plan.h"

namespace sluice {

// 2(n-1) rounds of 1/n of the data each: the least traffic, but the most rounds.
Plan ring(std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
