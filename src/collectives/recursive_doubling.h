#pragma once

#include <cstddef>

#include "collectives/plan.h"

namespace sluice {

// log2(n) rounds of all the data: the fewest rounds, for messages where only latency counts.
Plan recursive_doubling(std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
