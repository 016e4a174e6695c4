#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/layer.h"
#include "model/names.h"
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

// What a sum of M bytes costs among others. In a network their start-ups overlap; on the serial
// channel of the paper both lines are the same.
struct StreamCost {
  AllReduceCost alone;  // until it is done, if nothing else is in flight
  AllReduceCost busy;   // until the links are free for the next
};
inline StreamCost serial(const AllReduceCost& cost) { return {cost, cost}; }

// What a plan amounts to.
enum class MergedAs : std::uint8_t {
  kMerged,
  kLayers,  // each layer on its own, as wfbp does
  kWhole,   // all layers together, as single does
};

inline constexpr std::array kMergedAsNames{
    Names<MergedAs>{MergedAs::kMerged, "merged"},
    Names<MergedAs>{MergedAs::kLayers, "wfbp"},
    Names<MergedAs>{MergedAs::kWhole, "single"},
};

struct MergePlan {
  std::vector<LayerGroup> groups;  // in the order of sending; none if all layers are bare
  Duration iteration{0};           // predicted
  MergedAs as = MergedAs::kMerged;
};

// The time per iteration. Groups come in the order of sending, last layers first, and must contain
// every layer that is not bare.
Duration streamed_iteration(const Profile& profile, const StreamCost& cost,
                            std::span<const LayerGroup> groups);
// The same on a serial channel (Eq. 20 and 21).
Duration merged_iteration(const Profile& profile, const AllReduceCost& cost,
                          std::span<const LayerGroup> groups);

// The plans of wfbp and of single.
MergePlan separate_layers(const Profile& profile, const StreamCost& cost);
MergePlan all_layers(const Profile& profile, const StreamCost& cost);

// Algorithm 1: merges a layer with the next one to become ready if that is less than a start-up
// away. O(L). Not always optimal, because it looks ahead by one layer only.
MergePlan merge_greedy(const Profile& profile, const AllReduceCost& cost);

// The groups with the shortest iteration, by dynamic programming in O(L^2). Merges where it makes
// no difference.
MergePlan merge_optimal(const Profile& profile, const AllReduceCost& cost);

MergePlan merge(const Profile& profile, const AllReduceCost& cost, Merge how);

// Predictions for sums that overlap are about so exact. A plan that gains less may well lose.
inline constexpr double kMergeGain = 0.05;

// Merges only if that is predicted to shorten what both wfbp and single would take, by more than
// this share; else the plan is the better of theirs.
MergePlan merge_if_faster(const Profile& profile, const StreamCost& cost, Merge how, double gain);

}  // namespace sluice
