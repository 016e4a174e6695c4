#include "partition/merge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/nets.h"

namespace sluice {
namespace {

using testing::any_allreduce;
using testing::any_net;
using testing::timed_allreduce;
using testing::timed_net;

// Eq. 20 and 21 layer by layer under conditions 14-16: a layer that does not send passes its
// gradient to the layer before it.
Duration replay(const Profile& profile, const AllReduceCost& cost, const std::vector<bool>& sends) {
  Time computed = profile.forward();
  Time channel_free{0};
  Bytes gathered = 0;
  for (std::size_t l = profile.layers.size(); l-- > 0;) {
    computed += profile.layers[l].backward;
    gathered += profile.layers[l].params * kFloatBytes;
    channel_free = std::max(channel_free, computed);
    if (sends[l] && gathered > 0) {
      channel_free += cost.time(gathered);
      gathered = 0;
    }
  }
  return channel_free;
}

Duration best_of_all_groupings(const Profile& profile, const AllReduceCost& cost) {
  const std::size_t layers = profile.layers.size();
  Duration best = Duration::max();
  for (std::size_t choice = 0; choice < std::size_t{1} << (layers - 1); ++choice) {
    std::vector<bool> sends(layers, true);
    for (std::size_t l = 1; l < layers; ++l) {
      sends[l] = (choice >> (l - 1)) % 2 == 1;
    }
    best = std::min(best, replay(profile, cost, sends));
  }
  return best;
}

// In each group, the layer whose gradient is ready last sends.
std::vector<bool> senders(const Profile& profile, const std::vector<LayerGroup>& groups) {
  std::vector<bool> sends(profile.layers.size(), false);
  for (const auto& [begin, end] : groups) {
    std::size_t l = begin;
    while (l + 1 < end && profile.layers[l].params == 0) {
      ++l;
    }
    sends[l] = true;
  }
  return sends;
}

// Algorithm 1 line by line, with its errors corrected; for nets without bare layers. Index 0 is
// unused.
std::vector<bool> algorithm_1(const Profile& profile, const AllReduceCost& cost) {
  const std::size_t count = profile.layers.size();
  std::vector<Bytes> p(count + 1);
  std::vector<Duration> tb(count + 1), tc(count + 1);
  std::vector<Time> tau_b(count + 1);
  for (std::size_t l = 1; l <= count; ++l) {
    p[l] = profile.layers[l - 1].params * kFloatBytes;
    tb[l] = profile.layers[l - 1].backward;
    tc[l] = cost.time(p[l]);
  }
  tau_b[count] = profile.forward();
  for (std::size_t l = count; l-- > 0;) {
    tau_b[l] = tau_b[l + 1] + tb[l + 1];
  }
  const auto starts = [&] {
    std::vector<Time> tau_c(count + 1);
    tau_c[count] = tau_b[count] + tb[count];
    for (std::size_t l = count - 1; l >= 1; --l) {
      tau_c[l] = std::max(tau_c[l + 1] + tc[l + 1], tau_b[l] + tb[l]);
    }
    return tau_c;
  };
  std::vector<bool> sends(count, true);
  std::vector<Time> tau_c = starts();
  for (std::size_t l = count; l >= 2; --l) {
    if (tau_b[l - 2] - tau_c[l] < cost.startup) {
      tc[l] = Duration{0};
      p[l - 1] += p[l];
      tc[l - 1] = cost.time(p[l - 1]);
      tau_c = starts();
      sends[l - 1] = false;
    }
  }
  return sends;
}

RC_GTEST_PROP(Merge, OptimalIsTheBestOfAllGroupings, ()) {
  const Profile profile = any_net(12);
  const AllReduceCost cost = any_allreduce();
  RC_ASSERT(merge_optimal(profile, cost).iteration == best_of_all_groupings(profile, cost));
}

RC_GTEST_PROP(Merge, ThePredictionIsThatOfTheGroups, ()) {
  const Profile profile = any_net(30);
  const AllReduceCost cost = any_allreduce();
  for (const MergePlan& plan : {merge_greedy(profile, cost), merge_optimal(profile, cost)}) {
    RC_ASSERT(plan.iteration == replay(profile, cost, senders(profile, plan.groups)));
  }
}

RC_GTEST_PROP(Merge, GreedyIsNeverBetterThanOptimal, ()) {
  const Profile profile = any_net(30);
  const AllReduceCost cost = any_allreduce();
  RC_ASSERT(merge_greedy(profile, cost).iteration >= merge_optimal(profile, cost).iteration);
}

RC_GTEST_PROP(Merge, GreedyIsAlgorithm1, ()) {
  Profile profile = any_net(30);
  for (LayerProfile& layer : profile.layers) {
    layer.params = std::max<std::int64_t>(layer.params, 1);
  }
  const AllReduceCost cost = any_allreduce();
  RC_ASSERT(senders(profile, merge_greedy(profile, cost).groups) == algorithm_1(profile, cost));
}

// Three gradients, each less than a start-up after the previous one. Algorithm 1 merges them all,
// and the long first message no longer hides behind backward.
TEST(Merge, GreedyLosesWhereALongMessageWaitsForShortOnes) {
  const Profile profile = timed_net(0, {{9, 1}, {9, 1}, {0, 8}});
  const AllReduceCost cost = timed_allreduce(10);
  const MergePlan greedy = merge_greedy(profile, cost);
  EXPECT_EQ(greedy.groups, (std::vector<LayerGroup>{{0, 3}}));
  EXPECT_EQ(greedy.iteration, from_us(18 + 10 + 10));
  const MergePlan optimal = merge_optimal(profile, cost);
  EXPECT_EQ(optimal.groups, (std::vector<LayerGroup>{{2, 3}, {0, 2}}));
  EXPECT_EQ(optimal.iteration, from_us(18 + 10 + 2));
}

// Figure 3, case 1: every message hides behind the next backward step.
TEST(Merge, WhatHidesIsNotMerged) {
  const Profile profile = timed_net(20, {{10, 3}, {10, 3}, {10, 3}, {10, 3}});
  for (const auto merge : {merge_greedy, merge_optimal}) {
    const MergePlan plan = merge(profile, timed_allreduce(5));
    EXPECT_EQ(plan.groups, (std::vector<LayerGroup>{{3, 4}, {2, 3}, {1, 2}, {0, 1}}));
    EXPECT_EQ(plan.iteration, from_us(20 + 40 + 8));
  }
}

// Case 2: the last layer's message is longer than one backward step, but the next step makes up for
// it. Merged or not, only the first layer's message is exposed.
TEST(Merge, WhatCatchesUpCostsNothing) {
  const Profile profile = timed_net(20, {{10, 3}, {10, 1}, {10, 1}, {10, 9}});
  EXPECT_EQ(merge_optimal(profile, timed_allreduce(5)).iteration, from_us(20 + 40 + 8));
}

// Case 3 and Figure 4: layer by layer the channel falls behind. With layers 4 and 3 in one message,
// only the first layer's message is exposed.
TEST(Merge, MergingHidesWhatFellBehind) {
  const Profile profile = timed_net(20, {{10, 1}, {10, 2}, {2, 2}, {10, 4}});
  const AllReduceCost cost = timed_allreduce(6);
  const std::vector<LayerGroup> each_alone{{3, 4}, {2, 3}, {1, 2}, {0, 1}};
  EXPECT_EQ(merged_iteration(profile, cost, each_alone), from_us(20 + 10 + 10 + 8 + 8 + 7));
  EXPECT_EQ(merge_greedy(profile, cost).groups, (std::vector<LayerGroup>{{2, 4}, {1, 2}, {0, 1}}));
  for (const auto merge : {merge_greedy, merge_optimal}) {
    EXPECT_EQ(merge(profile, cost).iteration, from_us(20 + 32 + 7));
  }
}

TEST(Merge, WithStartUpBeyondAllElseThereIsOneMessage) {
  const Profile profile = timed_net(1, {{10, 3}, {10, 0}, {10, 3}, {10, 3}});
  for (const auto merge : {merge_greedy, merge_optimal}) {
    EXPECT_EQ(merge(profile, timed_allreduce(1000)).groups, (std::vector<LayerGroup>{{0, 4}}));
  }
}

TEST(Merge, WhereItMakesNoDifferenceOptimalMerges) {
  const Profile profile = timed_net(5, {{0, 1}, {0, 1}, {0, 1}});
  EXPECT_EQ(merge_optimal(profile, timed_allreduce(0)).groups, (std::vector<LayerGroup>{{0, 3}}));
}

// Bare layers take compute time, but the message of the layer behind them does not wait.
TEST(Merge, BareLayersSendNothingAndKeepNothingWaiting) {
  const Profile profile = timed_net(0, {{50, 0}, {1, 2}, {50, 0}, {1, 2}, {1, 0}});
  const AllReduceCost cost = timed_allreduce(10);
  for (const auto merge : {merge_greedy, merge_optimal}) {
    const MergePlan plan = merge(profile, cost);
    EXPECT_EQ(plan.groups, (std::vector<LayerGroup>{{3, 5}, {0, 3}}));
    EXPECT_EQ(plan.iteration, from_us(103));
  }
  const Profile bare = timed_net(7, {{1, 0}, {1, 0}});
  for (const auto merge : {merge_greedy, merge_optimal}) {
    EXPECT_TRUE(merge(bare, cost).groups.empty());
    EXPECT_EQ(merge(bare, cost).iteration, from_us(9));
  }
}

TEST(Merge, GroupsThatLeaveAGradientOutAreRefused) {
  const Profile profile = timed_net(0, {{1, 1}, {1, 1}, {1, 1}});
  for (const auto& groups : std::vector<std::vector<LayerGroup>>{
           {{1, 3}}, {{0, 2}}, {{2, 3}, {0, 1}}, {{0, 1}, {1, 3}}}) {
    EXPECT_THROW(merged_iteration(profile, timed_allreduce(1), groups), InvariantError);
  }
}

RC_GTEST_PROP(Merge, ChunksAreTheGroups, ()) {
  const Profile profile = any_net(20);
  const std::vector<Layer> layers = profile.layout();
  const auto servers = static_cast<std::size_t>(*testing::between(1, 3));
  const auto groups = merge_optimal(profile, any_allreduce()).groups;
  Strategy strategy;
  strategy.partition = Partition::kMerged;
  const ChunkMap chunks = make_chunks(layers, servers, strategy, groups);
  RC_ASSERT(chunks.size() == groups.size());
  std::int64_t end = 0;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[ChunkId(c)];
    const auto of_chunk = chunks.layers_of(ChunkId(c));
    RC_ASSERT(chunk.range.begin == end);
    RC_ASSERT(chunk.priority == of_chunk.front().index());
    RC_ASSERT(chunk.server == c % servers);
    for (const LayerId layer : of_chunk) {
      const LayerGroup& group = groups[groups.size() - 1 - c];
      RC_ASSERT(group.begin <= layer.index());
      RC_ASSERT(layer.index() < group.end);
      RC_ASSERT(chunks.chunks_of(layer).size() == 1U);
    }
    end = chunk.range.end;
  }
  RC_ASSERT(end == total_params(layers));
}

// ---- Sums that overlap --------------------------------------------------------------------------

StreamCost any_stream() {
  const AllReduceCost busy = any_allreduce();
  return {.alone = {busy.startup + from_us(static_cast<double>(*testing::anywhere(0, 100))),
                    busy.ns_per_byte},
          .busy = busy};
}

TEST(StreamedIteration, StartUpsOverlap) {
  // Gradients are ready at 30, 32, 42 and 52; their sums keep the links busy for 4, 2, 2 and 1.
  const Profile net = timed_net(20, {{10, 1}, {10, 2}, {2, 2}, {10, 4}});
  const StreamCost cost{.alone = timed_allreduce(6), .busy = timed_allreduce(0)};
  const MergePlan layers = separate_layers(net, cost);
  EXPECT_EQ(layers.groups.size(), 4U);
  EXPECT_EQ(layers.as, MergedAs::kLayers);
  EXPECT_EQ(layers.iteration, from_us(52 + 6 + 1));
  const MergePlan all = all_layers(net, cost);
  EXPECT_EQ(all.groups, (std::vector<LayerGroup>{{0, 4}}));
  EXPECT_EQ(all.as, MergedAs::kWhole);
  EXPECT_EQ(all.iteration, from_us(52 + 6 + 9));
  EXPECT_EQ(merge_if_faster(net, cost, Merge::kOptimal, 0).as, MergedAs::kLayers);
}

TEST(MergeIfFaster, MergesOnASerialChannel) {
  const Profile net = timed_net(20, {{10, 1}, {10, 2}, {2, 2}, {10, 4}});
  for (const Merge how : {Merge::kOptimal, Merge::kGreedy}) {
    const MergePlan plan = merge_if_faster(net, serial(timed_allreduce(6)), how, 0.06);
    EXPECT_EQ(plan.as, MergedAs::kMerged);
    EXPECT_EQ(plan.groups, merge(net, timed_allreduce(6), how).groups);
    EXPECT_EQ(plan.iteration, from_us(59)) << "and 63 separately";
    const MergePlan unsure = merge_if_faster(net, serial(timed_allreduce(6)), how, 0.07);
    EXPECT_EQ(unsure.as, MergedAs::kLayers);
  }
}

RC_GTEST_PROP(MergeIfFaster, IsNeverPredictedSlowerThanWfbpOrSingle, ()) {
  const Profile net = any_net(12);
  const StreamCost cost = any_stream();
  const double gain = *rc::gen::element(0.0, 0.03, 0.3);
  const MergePlan plan =
      merge_if_faster(net, cost, *rc::gen::element(Merge::kOptimal, Merge::kGreedy), gain);
  const MergePlan layers = separate_layers(net, cost);
  const MergePlan all = all_layers(net, cost);
  RC_ASSERT(plan.iteration == streamed_iteration(net, cost, plan.groups));
  RC_ASSERT(plan.iteration <= std::min(layers.iteration, all.iteration));
  if (plan.as == MergedAs::kMerged) {
    RC_ASSERT(to_us(plan.iteration) <
              (1 - gain) * to_us(std::min(layers.iteration, all.iteration)));
  } else {
    RC_ASSERT(plan.groups == (plan.as == MergedAs::kLayers ? layers : all).groups);
  }
}

}  // namespace
}  // namespace sluice
