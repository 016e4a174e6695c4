#include "planner/closed_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "collectives/cost.h"
#include "partition/merge.h"
#include "support/nets.h"

namespace sluice {
namespace {

using testing::any_allreduce;
using testing::any_net;
using testing::timed_allreduce;
using testing::timed_net;

// From some message on, the channel is busy until the end: WFBP is the worst instance of case 3.
RC_GTEST_PROP(ClosedForms, WfbpIsTheLargestOfItsCases, ()) {
  const Profile profile = any_net(20);
  const AllReduceCost cost = any_allreduce();
  Duration largest{0};
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    largest = std::max(largest, exposed_iteration(profile, cost, l));
  }
  RC_ASSERT(wfbp_iteration(profile, cost) == largest);
}

RC_GTEST_PROP(ClosedForms, NoOverlapIsNeverFasterAndMergingNeverSlower, ()) {
  const Profile profile = any_net(20);
  const AllReduceCost cost = any_allreduce();
  const Duration wfbp = wfbp_iteration(profile, cost);
  const Duration single = single_iteration(profile, cost);
  RC_ASSERT(wfbp <= naive_iteration(profile, cost));
  RC_ASSERT(merge_optimal(profile, cost).iteration <= std::min(wfbp, single));
}

RC_GTEST_PROP(ClosedForms, SingleIsOneGroupIfTheFirstLayerHasParameters, ()) {
  Profile profile = any_net(20);
  profile.layers.front().params += 1;
  const AllReduceCost cost = any_allreduce();
  const std::vector<LayerGroup> all{{0, profile.layers.size()}};
  RC_ASSERT(single_iteration(profile, cost) == merged_iteration(profile, cost, all));
}

// MG-WFBP, Figure 3. Forward 20, backward steps of 10, start-up 5.
TEST(ClosedForms, TheThreeCasesOfWfbp) {
  const AllReduceCost cost = timed_allreduce(5);
  const Profile hides = timed_net(20, {{10, 3}, {10, 3}, {10, 3}, {10, 3}});
  EXPECT_EQ(hidden_iteration(hides, cost), from_us(68));
  EXPECT_EQ(wfbp_iteration(hides, cost), from_us(68));
  const Profile catches_up = timed_net(20, {{10, 3}, {10, 1}, {10, 1}, {10, 9}});
  EXPECT_EQ(wfbp_iteration(catches_up, cost), hidden_iteration(catches_up, cost));
  const Profile falls_behind = timed_net(20, {{10, 3}, {10, 3}, {10, 13}, {10, 4}});
  EXPECT_EQ(exposed_iteration(falls_behind, cost, 2), from_us(20 + 20 + 18 + 8 + 8));
  EXPECT_EQ(wfbp_iteration(falls_behind, cost), from_us(74));
  EXPECT_EQ(naive_iteration(falls_behind, cost), from_us(60 + 8 + 8 + 18 + 9));
  EXPECT_EQ(single_iteration(falls_behind, cost), from_us(60 + 5 + 23));
}

TEST(ClosedForms, SpeedupFallsWithTheRatioOfCommunicationToComputation) {
  EXPECT_DOUBLE_EQ(speedup(8, from_us(30), from_us(0)), 8);
  EXPECT_DOUBLE_EQ(speedup(8, from_us(30), from_us(30)), 4);
  EXPECT_DOUBLE_EQ(speedup(8, from_us(30), from_us(90)), 2);
}

// MG-WFBP, Figure 5b: the start-up on 2, 4 and 8 nodes follows from one latency.
TEST(ClosedForms, TheRingHasTheStartUpTimesOfThePaper) {
  const LinkCost link{from_us(45.26), 0.8, 0.1};
  EXPECT_EQ(collective_cost(load_of(Collective::kRing, {.size = 2}), link).startup, from_us(90.52));
  EXPECT_EQ(collective_cost(load_of(Collective::kRing, {.size = 4}), link).startup,
            from_us(271.56));
  EXPECT_EQ(collective_cost(load_of(Collective::kRing, {.size = 8}), link).startup,
            from_us(633.64));
}

TEST(ClosedForms, PipeSgdIsBoundByItsLongerHalf) {
  const Stages computing{from_us(1), from_us(9), from_us(6)};
  EXPECT_EQ(synchronous_iteration(computing), from_us(16));
  EXPECT_EQ(ideal_pipelined_iteration(computing, 2), from_us(8));
  EXPECT_EQ(ideal_pipelined_iteration(computing, 4), from_us(4));
  EXPECT_EQ(pipelined_iteration(computing), from_us(10));
  EXPECT_DOUBLE_EQ(scaling_efficiency(computing), 1);
  const Stages communicating{from_us(1), from_us(9), from_us(40)};
  EXPECT_EQ(pipelined_iteration(communicating), from_us(40));
  EXPECT_DOUBLE_EQ(scaling_efficiency(communicating), 0.25);
}

// Eq. 5 and 6 written out: four workers, alpha 2 us, beta 3 ns, gamma 1 ns, 4000 bytes, S 7 us.
TEST(ClosedForms, SegmentsPayTheirStartUpAndSynchronisation) {
  const AllReduceCost ring =
      collective_cost(load_of(Collective::kRing, {.size = 4}), {from_us(2), 3, 1});
  const double bytes_us = 2 * 0.75 * 4000 * 0.003 + 0.75 * 4000 * 0.001;
  EXPECT_EQ(segmented_all_reduce(ring, 4000, 1, from_us(7)), from_us(2 * 3 * 2 + bytes_us + 7));
  EXPECT_EQ(segmented_all_reduce(ring, 4000, 5, from_us(7)),
            from_us(2 * 3 * 5 * 2 + bytes_us + 5 * 7));
}

TEST(ClosedForms, TrafficOfTheSevenAlgorithms) {
  EXPECT_DOUBLE_EQ(bsp_traffic(1), kAspTraffic);
  EXPECT_DOUBLE_EQ(bsp_traffic(4), 0.5);
  EXPECT_DOUBLE_EQ(ssp_traffic(0), bsp_traffic(1));
  EXPECT_DOUBLE_EQ(ssp_traffic(3), 1.25);
  EXPECT_DOUBLE_EQ(easgd_traffic(8), 0.25);
  EXPECT_DOUBLE_EQ(gossip_traffic(0.1), 0.1);
  EXPECT_LT(kPairwiseTraffic, kAllReduceTraffic);
}

}  // namespace
}  // namespace sluice
