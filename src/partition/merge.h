#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/layer.h"
#include "model/strategy.h"

namespace sluice {

// Which layers to sum in one message (MG-WFBP). An all-reduce of M bytes takes a + b*M, so two
// messages in one save a start-up a; but the one cannot begin before the gradients of all its
// layers are final.
//
//   compute  | forward | 4 | 3 | 2 | 1 |         backward runs from the last layer to the first
//   channel                    | 4, 3 | 2 | 1 |  one message at a time, in that order
//                                             ^ the next forward pass waits for all of them
//
// A layer without parameters is bare: it takes its time, but has nothing to send and keeps no
// message waiting.

struct MergePlan {
  std::vector<LayerGroup> groups;  // in the order of sending; none if all layers are bare
  Duration iteration{0};           // predicted
};

// The time of an iteration (Eq. 20 and 21). The groups stand in the order of sending, the last
// layers first, and hold every layer that is not bare.
Duration merged_iteration(const Profile& profile, const AllReduceCost& cost,
                          std::span<const LayerGroup> groups);

// Algorithm 1: merges a layer into the next one to become ready if that one is less than a start-up
// away. O(L), and not always optimal: it looks ahead by one layer only.
MergePlan merge_greedy(const Profile& profile, const AllReduceCost& cost);

// The groups with the least time of an iteration, by dynamic programming in O(L^2). Where it
// makes no difference it merges.
MergePlan merge_optimal(const Profile& profile, const AllReduceCost& cost);

// As the strategy says.
MergePlan merge(const Profile& profile, const AllReduceCost& cost, Merge how);

}  // namespace sluice
