#pragma once

#include <cstddef>

#include "collectives/plan.h"

namespace sluice {

// Two steps for any number of ranks, with the traffic of a ring: each rank sums its own n-th part
// of the data, which it gets from all others at once, and gives the sum to all.
Plan direct(std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
