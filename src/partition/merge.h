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

// Which layers to sum in one message (MG-WFBP). An all-reduce of M bytes takes a + b*M, so merging
// two messages saves one start-up a. But the merged message cannot begin before the gradients of
// all its layers are final.
//
//   compute  | forward | 4 | 3 | 2 | 1 |         backward runs from the last layer to the first
//   channel                    | 4, 3 | 2 | 1 |  one message at a time, in that order
//                                             ^ the next forward pass waits for all of them
//
// A layer without parameters is bare: it takes compute time, but sends nothing and delays no
// message.

struct MergePlan {
  std::vector<LayerGroup> groups;  // in the order of sending; none if all layers are bare
  Duration iteration{0};           // predicted
};

// The time per iteration (Eq. 20 and 21). Groups come in the order of sending, last layers first,
// and must contain every layer that is not bare.
Duration merged_iteration(const Profile& profile, const AllReduceCost& cost,
                          std::span<const LayerGroup> groups);

// Algorithm 1: merges a layer with the next one to become ready if that is less than a start-up
// away. O(L). Not always optimal, because it looks ahead by one layer only.
MergePlan merge_greedy(const Profile& profile, const AllReduceCost& cost);

// The groups with the shortest iteration, by dynamic programming in O(L^2). Merges where it makes
// no difference.
MergePlan merge_optimal(const Profile& profile, const AllReduceCost& cost);

MergePlan merge(const Profile& profile, const AllReduceCost& cost, Merge how);

}  // namespace sluice
