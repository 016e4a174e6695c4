// The bound is not only never beaten (see properties_test.cc) but also tight: with fine slices and
// no latency, p3 reaches it.
#include "drivers/virtual/bound.h"

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace sluice {
namespace {

using testing::point;
using testing::profile_of;
using testing::run_simulated;

// One unit for each parameter on the wire and for each pass through a layer.
struct Net {
  Net() {
    cluster.topology = Topology(4, 1, 0);
    cluster.bandwidth_gbps = 0.032;
    cluster.latency = Duration{0};
    cluster.header_bytes = 0;
    cluster.update_ns_per_byte = cluster.reduce_ns_per_byte = 0;
    strategy.credit = strategy.peer_credit = kFloatBytes;
  }

  double bound_us(const testing::Simulated& run) const {
    return to_us(lower_bound(profile, cluster, strategy, *run.assembly.chunks));
  }

  Profile profile = profile_of({400, 0}, 1, 1);
  Cluster cluster;
  Strategy strategy = point(Exchange::kBroadcast, Partition::kSlice, Order::kPriority, 1);
};

// All of a large first layer passes every interface twice between its backward and its forward
// pass, except for the quarter that stays on the host.
TEST(BoundTest, ALargeFirstLayerGoesBothWaysWithNothingToHideBehind) {
  const Net net;
  const auto run = run_simulated(net.profile, net.cluster, net.strategy);
  EXPECT_EQ(net.bound_us(run), 2 * 0.75 * 400 + 4);
  EXPECT_LT(to_us(run.result.iteration_time()), 1.02 * net.bound_us(run));
}

// The server that keeps it receives three gradients.
TEST(BoundTest, ALayerOnOneServerIsGatheredThere) {
  Net net;
  net.strategy.partition = Partition::kLayer;
  const auto run = run_simulated(net.profile, net.cluster, net.strategy);
  EXPECT_EQ(net.bound_us(run), 3 * 400 + 4);
}

TEST(BoundTest, OneSpeaksForTheWorkersOfAHost) {
  Net net;
  net.cluster.topology = Topology(4, 5, 0);
  net.strategy.local_aggregation = true;
  const auto run = run_simulated(net.profile, net.cluster, net.strategy);
  EXPECT_EQ(net.bound_us(run), 2 * 0.75 * 400 + 4);
  EXPECT_LT(to_us(run.result.iteration_time()), 1.02 * net.bound_us(run));
}

// Five steps of four units, and a sum that every interface carries twice less a quarter: between
// two steps, or behind four of them.
TEST(BoundTest, LocalStepsShareASum) {
  Net net;
  net.strategy.algorithm = Algorithm::kLocal;
  net.strategy.exchange = Exchange::kAllReduce;
  net.strategy.collective = Collective::kRing;
  net.strategy.slice_params = 40;
  net.strategy.segment_params = 0;
  net.strategy.credit = net.strategy.peer_credit = 1'000'000;
  net.cluster.bandwidth_gbps = 3.2;
  net.profile = profile_of({400, 0}, 10, 10);
  const double compute = 40;
  for (const auto& [delay, expected] :
       {std::pair{0, (5 * compute + 0.75 * 4) / 5}, std::pair{4, compute}}) {
    net.strategy.cadence = {.every = 5, .delay = delay};
    const auto run = run_simulated(net.profile, net.cluster, net.strategy, 20);
    EXPECT_DOUBLE_EQ(net.bound_us(run), expected);
    EXPECT_LT(to_us(run.result.iteration_time()), 1.03 * expected);
    EXPECT_GE(to_us(run.result.iteration_time()), expected);
  }
  net.cluster.bandwidth_gbps = 0.032;
  for (const Iteration delay : {0, 4}) {
    net.strategy.cadence = {.every = 5, .delay = delay};
    const auto run = run_simulated(net.profile, net.cluster, net.strategy, 20);
    EXPECT_EQ(net.bound_us(run), 2 * 0.75 * 400 / 5);
    EXPECT_GE(to_us(run.result.iteration_time()), net.bound_us(run));
  }
}

// Each of four hosts receives the codes of the three others, once in five steps.
TEST(BoundTest, GatheredCodesComeFromAllOthers) {
  Net net;
  net.strategy = testing::point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo, 1);
  net.strategy.algorithm = Algorithm::kLocal;
  net.strategy.codec = Codec::kTopK;
  net.strategy.error_feedback = true;
  net.strategy.top_k = {.block = 400, .kept = 400, .bits = 32};  // all values as they are
  net.strategy.cadence = {.every = 5, .delay = 4};
  net.cluster.code_ns_per_byte = 0;
  const auto run = run_simulated(net.profile, net.cluster, net.strategy, 20);
  EXPECT_EQ(net.bound_us(run), 3 * 400 / 5);
  EXPECT_GE(to_us(run.result.iteration_time()), net.bound_us(run));
  EXPECT_LT(to_us(run.result.iteration_time()), 1.1 * net.bound_us(run));
}

// An outer gradient and global parameters go each way between two hosts. With an odd number of
// hosts nobody is sure to have a partner.
TEST(BoundTest, PairsExchangeTwoVectors) {
  Net net;
  net.strategy.algorithm = Algorithm::kLocal;
  net.strategy.exchange = Exchange::kGossip;
  net.strategy.slice_params = 40;
  net.strategy.credit = net.strategy.peer_credit = 1'000'000;
  net.strategy.cadence = {.every = 5};
  const auto run = run_simulated(net.profile, net.cluster, net.strategy, 40);
  EXPECT_EQ(net.bound_us(run), 2 * 400 / 5);
  EXPECT_GE(to_us(run.result.iteration_time()), net.bound_us(run));
  EXPECT_LT(to_us(run.result.iteration_time()), 1.1 * net.bound_us(run));
  net.cluster.topology = Topology(3, 1, 0);
  EXPECT_EQ(net.bound_us(run), 4);
}

}  // namespace
}  // namespace sluice
