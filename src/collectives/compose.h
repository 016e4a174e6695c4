#pragma once

#include <cstddef>
#include <optional>

#include "collectives/plan.h"

namespace sluice {

// Building blocks of the plans.

// A transfer of `range`, or none if the range is empty.
std::optional<Transfer> transfer(std::size_t peer, Range range);

// The plan, then the same backwards: every message returns to its sender and replaces the data
// there. Turns a reduction that leaves each part of the sum with one rank into an all-reduce.
Plan there_and_back(Plan reduction);

// For plans that need a power of two. With p the largest power within `size`, each rank r >= p
// sends its data to rank r - p, sits out, and gets the sum back:
//
//   size 6:   4 -> 0, 5 -> 1  |  core(0 ... 3)  |  0 -> 4, 1 -> 5
//
// `core` makes the plan of one of the p ranks.
using CorePlan = Plan (*)(std::size_t rank, std::size_t size, Range whole);
Plan fold_to_power_of_two(std::size_t rank, std::size_t size, Range whole, CorePlan core);

}  // namespace sluice
