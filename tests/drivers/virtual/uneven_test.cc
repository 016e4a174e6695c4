// Clusters whose hosts differ: shared interfaces, racks, slow links, slow workers, jitter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "drivers/virtual/bound.h"
#include "drivers/virtual/compute_pace.h"
#include "drivers/virtual/traffic.h"
#include "nodes/presets.h"
#include "support/simulated.h"
#include "support/talkative.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using testing::profile_of;
using testing::run_simulated;

// ---- messages -----------------------------------------------------------------------------------

// Six hosts; a byte takes a microsecond on the wire.
class UnevenTrafficTest : public ::testing::Test {
 protected:
  UnevenTrafficTest() {
    cluster_.topology = Topology(6, 1, 0);
    cluster_.bandwidth_gbps = 0.008;
    cluster_.latency = Duration{0};
    cluster_.header_bytes = 0;
  }

  struct Sending {
    std::size_t from;
    std::size_t to;
    Bytes bytes = 10;
  };

  // When each of these, all sent at once, is with its receiver.
  std::vector<double> arrivals_us(const std::vector<Sending>& sendings) const {
    DueQueue due;
    Cores cores(0, 6, due);
    Traffic traffic(cluster_, 0, due, cores);
    for (std::size_t s = 0; s < sendings.size(); ++s) {
      Message message;
      message.from = NodeId(sendings[s].from);
      message.to = NodeId(sendings[s].to);
      message.chunk = ChunkId(s);
      message.payload_bytes = sendings[s].bytes;
      traffic.send(message, Payload(sendings[s].bytes), Time{0});
    }
    std::vector<double> arrivals(sendings.size(), -1);
    while (!due.empty()) {
      const Time now = due.next_time();
      const Due next = due.pop();
      if (next.kind == Due::Kind::kReached) {
        traffic.on_reached(next.index, now);
      } else if (next.kind == Due::Kind::kArrived) {
        const auto transit = traffic.on_arrived(next.index, now);
        arrivals[transit->message.chunk.index()] = to_us(now);
      } else {
        traffic.on_egress_free(HostId(next.index));
        traffic.pump_egress(HostId(next.index), now);
      }
    }
    return arrivals;
  }

  Cluster cluster_;
};

TEST_F(UnevenTrafficTest, HostsThatShareAnInterfaceTakeTurns) {
  cluster_.hosts_per_nic = 2;
  EXPECT_THAT(arrivals_us({{0, 2}, {0, 2}, {1, 4}, {1, 4}}), ElementsAre(10, 30, 20, 40));
  EXPECT_THAT(arrivals_us({{0, 2}, {4, 3}}), ElementsAre(10, 20)) << "on the way in too";
}

TEST_F(UnevenTrafficTest, HostsThatShareAnInterfaceExchangeInMemory) {
  cluster_.hosts_per_nic = 2;
  EXPECT_THAT(arrivals_us({{0, 2}, {0, 1}, {1, 0}}), ElementsAre(10, 0, 0));
}

TEST_F(UnevenTrafficTest, AHostMayHaveASlowerLink) {
  cluster_.special_hosts = {{.index = 1, .bandwidth_gbps = 0.004}};
  EXPECT_THAT(arrivals_us({{0, 2}, {1, 3}, {4, 1}}), ElementsAre(10, 20, 20));
}

// Who begins later but is nearer is not held up by who comes from far away.
TEST_F(UnevenTrafficTest, AReceiverTakesWhoIsThereFirst) {
  cluster_.special_hosts = {{.index = 1, .latency = from_us(100)}};
  EXPECT_THAT(arrivals_us({{1, 0}, {2, 0}, {2, 0}}), ElementsAre(110, 10, 20));
}

TEST_F(UnevenTrafficTest, WhatLeavesARackPassesItsUplink) {
  cluster_.racks = Racks{.hosts = 2, .uplink_gbps = 0.004};
  EXPECT_THAT(arrivals_us({{0, 1}}), ElementsAre(10)) << "within the rack";
  EXPECT_THAT(arrivals_us({{0, 2}}), ElementsAre(20)) << "cut through";
  EXPECT_THAT(arrivals_us({{0, 2}, {1, 4}}), ElementsAre(20, 40)) << "one at a time on the way up";
  EXPECT_THAT(arrivals_us({{0, 4}, {2, 5}}), ElementsAre(20, 40)) << "and on the way down";
  EXPECT_THAT(arrivals_us({{0, 2}, {3, 1}}), ElementsAre(20, 20)) << "in both directions";
}

// The last one must wait for nothing, although another is on its way to the same rack before it.
TEST_F(UnevenTrafficTest, ACongestedUplinkHoldsUpNobodyElse) {
  cluster_.racks = Racks{.hosts = 2, .uplink_gbps = 0.004};
  EXPECT_THAT(arrivals_us({{0, 2, 100}, {1, 4, 10}, {3, 5, 10}}), ElementsAre(200, 220, 20));
}

// ---- whole runs ---------------------------------------------------------------------------------

Cluster four_hosts() {
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = 10;
  return cluster;
}

const Profile kProfile = profile_of({30'000, 300'000, 70'000}, 300, 600);

Duration iteration_of(const Cluster& cluster, std::string_view preset, std::uint64_t seed = 1,
                      Iteration iterations = 20) {
  const Job job = testing::job_for(kProfile, cluster, find_preset(preset)->strategy);
  const Assembly assembly = assemble(job);
  return simulate({.profile = kProfile,
                   .cluster = cluster,
                   .hosts = assembly.protocols,
                   .iterations = iterations,
                   .seed = seed})
      .iteration_time();
}

// The path hop by hop comes to the same as the short one.
TEST(UnevenClusterTest, HostsThatDifferInNothingAreAsUsual) {
  const Cluster usual = four_hosts();
  Cluster named = usual;
  named.special_hosts = {{.index = 1, .bandwidth_gbps = 10, .latency = usual.latency}};
  Cluster one_rack = usual;
  one_rack.racks = Racks{.hosts = 4, .uplink_gbps = 1};
  for (const char* preset : {"p3", "kvstore", "wfbp", "ps-sync", "pipe-sgd+q", "ssp"}) {
    EXPECT_EQ(iteration_of(named, preset), iteration_of(usual, preset)) << preset;
    EXPECT_EQ(iteration_of(one_rack, preset), iteration_of(usual, preset)) << preset;
  }
}

TEST(UnevenClusterTest, TheSlowestWorkerSetsThePaceOfAll) {
  Cluster cluster = four_hosts();
  cluster.bandwidth_gbps = 1e6;
  cluster.latency = Duration{0};
  cluster.special_hosts = {{.index = 2, .speed = 0.5}};
  const Duration slow = 2 * kProfile.compute();
  EXPECT_NEAR(to_us(iteration_of(cluster, "bsp")), to_us(slow), 0.05 * to_us(slow));
}

TEST(UnevenClusterTest, JitterIsDrawnFromTheSeed) {
  Cluster cluster = four_hosts();
  const Duration steady = iteration_of(cluster, "bsp");
  cluster.jitter = 0.05;
  EXPECT_EQ(iteration_of(cluster, "bsp", 3), iteration_of(cluster, "bsp", 3));
  EXPECT_NE(iteration_of(cluster, "bsp", 3), iteration_of(cluster, "bsp", 4));
  EXPECT_GT(iteration_of(cluster, "bsp", 3, 100), steady) << "all wait for the slowest";
}

TEST(UnevenClusterTest, JitterHasMeanOneAndItsStandardDeviation) {
  Cluster cluster = four_hosts();
  cluster.jitter = 0.1;
  const ComputePace pace(cluster, {}, 7);
  constexpr Iteration kDraws = 20'000;
  double sum = 0;
  double squares = 0;
  for (Iteration t = 0; t < kDraws; ++t) {
    const double drawn = pace.slowdown(static_cast<std::size_t>(t % 4), t / 4);
    sum += drawn;
    squares += std::log(drawn) * std::log(drawn);
  }
  EXPECT_NEAR(sum / kDraws, 1, 0.003);
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.1, 0.005);
}

RC_GTEST_PROP(UnevenClusterProperties, NothingIsFasterThanTheBound, ()) {
  const auto number = [](int min, int max) {
    return static_cast<double>(*rc::gen::inRange(min, max));
  };
  Cluster cluster = four_hosts();
  cluster.topology = Topology(*rc::gen::inRange<std::size_t>(1, 7), 1, 0);
  cluster.jitter = number(0, 3) / 20;
  cluster.hosts_per_nic = *rc::gen::inRange<std::size_t>(1, 3);
  if (*rc::gen::arbitrary<bool>()) {
    cluster.racks = Racks{*rc::gen::inRange<std::size_t>(1, 4), number(1, 20)};
  }
  if (*rc::gen::arbitrary<bool>()) {
    cluster.special_hosts = {{.index = 0,
                              .bandwidth_gbps = number(1, 30),
                              .latency = from_us(number(0, 100)),
                              .speed = number(1, 20) / 10}};
  }
  Strategy strategy = (*rc::gen::elementOf(presets())).strategy;
  strategy.cadence = testing::talkative(strategy).cadence;
  const auto run = run_simulated(kProfile, cluster, strategy, 6);
  RC_ASSERT(run.result.iteration_time() >=
            lower_bound(kProfile, cluster, run.assembly.job.strategy, *run.assembly.chunks));
}

}  // namespace
}  // namespace sluice
