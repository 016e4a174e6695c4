#include "report/breakdown.h"

#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "report/tally.h"
#include "report/tee.h"
#include "support/simulated.h"

namespace sluice {
namespace {

Message message_between(std::size_t from, std::size_t to) {
  Message message;
  message.from = NodeId(from);
  message.to = NodeId(to);
  return message;
}

Work work_for(Iteration iteration, std::uint32_t layer, bool lent) {
  Work work;
  work.kind = lent ? WorkKind::kReduce : WorkKind::kUpdate;
  work.node = NodeId(0);
  work.origin = NodeId(lent ? 1 : 0);
  work.iteration = iteration;
  work.priority = layer;
  return work;
}

Time at(int us) { return from_us(us); }

TEST(BreakdownTest, NamesEachMomentOfAWaitOnce) {
  Breakdown breakdown{Topology(2, 2, 0)};
  breakdown.worked(work_for(3, 1, true), at(10), at(20));
  breakdown.worked(work_for(3, 1, false), at(15), at(40));
  breakdown.sent(message_between(0, 2), at(30), at(55));
  breakdown.waited(NodeId(0), LayerId(1), 3, at(0), at(100));
  breakdown.received(message_between(2, 0), at(60), at(70));  // reported late
  const WaitShares shares = breakdown.shares();
  EXPECT_EQ(shares.local_aggregation, at(10));
  EXPECT_EQ(shares.aggregation, at(20));
  EXPECT_EQ(shares.communication, at(25));
  EXPECT_EQ(shares.others, at(45));
  EXPECT_EQ(shares.total(), at(100));
}

TEST(BreakdownTest, LooksOnlyAtTheAwaitedLayerAndTheOwnHost) {
  Breakdown breakdown{Topology(2, 2, 0)};
  breakdown.worked(work_for(3, 2, false), at(0), at(50));
  breakdown.worked(work_for(2, 1, false), at(0), at(50));
  breakdown.sent(message_between(2, 3), at(0), at(50));
  breakdown.waited(NodeId(0), LayerId(1), 3, at(0), at(100));
  EXPECT_EQ(breakdown.shares().others, at(100));
}

TEST(BreakdownTest, LosesNoWaitInALongRun) {
  Breakdown breakdown{Topology(1, 1, 0)};
  for (int t = 0; t < 1000; ++t) {
    breakdown.worked(work_for(t, 0, false), at(10 * t), at(10 * t + 3));
    breakdown.sent(message_between(0, 0), at(10 * t + 3), at(10 * t + 5));
    breakdown.waited(NodeId(0), LayerId(0), t, at(10 * t), at(10 * t + 6));
  }
  const WaitShares shares = breakdown.shares();
  EXPECT_EQ(shares.aggregation, at(3000));
  EXPECT_EQ(shares.communication, at(2000));
  EXPECT_EQ(shares.others, at(1000));
}

TEST(BreakdownTest, LeavesTheWarmUpOut) {
  Breakdown breakdown{Topology(1, 1, 0), urgency(600, 0)};
  for (int t = 0; t < 1000; ++t) {
    breakdown.sent(message_between(0, 0), at(10 * t + 3), at(10 * t + 5));
    breakdown.waited(NodeId(0), LayerId(0), t, at(10 * t), at(10 * t + 6));
  }
  EXPECT_EQ(breakdown.shares().communication, at(800));
  EXPECT_EQ(breakdown.shares().total(), at(2400));
}

// Two workers, one of them slow: the other waits for it, not for the network.
TEST(BreakdownTest, FindsTheStragglerInASimulation) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.bandwidth_gbps = 100;
  const Profile profile = testing::profile_of({1000, 1000}, 100, 100);
  const Assembly assembly =
      assemble(testing::job_for(profile, cluster, find_preset("p3")->strategy));
  Breakdown breakdown(cluster.topology);
  simulate({.profile = profile,
            .cluster = cluster,
            .hosts = assembly.protocols,
            .iterations = 10,
            .observer = &breakdown,
            .slowdowns = {1, 3}});
  const WaitShares shares = breakdown.shares();
  EXPECT_GT(to_us(shares.others), 0.8 * to_us(shares.total()));
  // Per iteration the fast worker is 800 us ahead, and the slow one takes 1200 us.
  EXPECT_GT(to_us(shares.total()), 9 * 700);
  EXPECT_LT(to_us(shares.total()), 10 * 1200);
}

TEST(BreakdownTest, AddsUpToTheTimeOfTheRun) {
  Cluster cluster;
  cluster.topology = Topology(2, 2, 0);
  cluster.bandwidth_gbps = 1;
  const Profile profile = testing::profile_of({100'000, 200'000, 50'000}, 300, 600);
  for (const bool local : {false, true}) {
    Strategy strategy = find_preset("p3")->strategy;
    strategy.local_aggregation = local;
    Breakdown breakdown(cluster.topology);
    Tally tally(cluster.topology);
    Tee both({&breakdown, &tally});
    const auto run = testing::run_simulated(profile, cluster, strategy, 12, &both);
    Duration spent = breakdown.shares().total();
    for (std::size_t w = 0; w < 4; ++w) {
      spent += tally.worker(w).compute;
    }
    // Every worker computes or waits from the start until its last parameters arrive.
    EXPECT_LE(spent, 4 * run.result.end);
    EXPECT_GE(to_us(spent), 0.98 * 4 * to_us(run.result.starts.back()));
    EXPECT_EQ(breakdown.shares().local_aggregation > Duration{0}, local);
  }
}

}  // namespace
}  // namespace sluice
