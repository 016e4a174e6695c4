#pragma once

#include <cstddef>
#include <optional>

#include "collectives/plan.h"

namespace sluice {

// What the plans are put together from.

// A transfer of `range`, or none if there is nothing to move.
std::optional<Transfer> transfer(std::size_t peer, Range range);

// The plan, then the same backwards: every message returns to where it came from, and replaces what
// is there. A reduction that leaves each part of the sum with one rank becomes an all-reduce.
Plan there_and_back(Plan reduction);

// Serves the plans that need a power of two. With p the largest one within `size`, each rank
// r >= p hands its data to rank r - p, sits out, and gets the sum back:
//
//   size 6:   4 -> 0, 5 -> 1  |  core(0 ... 3)  |  0 -> 4, 1 -> 5
//
// `core` makes the plan of a rank among p.
using CorePlan = Plan (*)(std::size_t rank, std::size_t size, Range whole);
Plan fold_to_power_of_two(std::size_t rank, std::size_t size, Range whole, CorePlan core);

}  // namespace sluice
