#include "report/totals.h"

#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "report/tee.h"
#include "support/simulated.h"

namespace sluice {
namespace {

Message passing_message(std::size_t from, std::size_t to) {
  Message m;
  m.kind = MessageKind::kPush;
  m.from = NodeId(from);
  m.to = NodeId(to);
  m.payload_bytes = 4;
  return m;
}

Work counted_work(std::size_t node) {
  Work work;
  work.node = NodeId(node);
  return work;
}

double hidden_share(const Topology& topology, const Tally& tally) {
  return totals_of(topology, tally, Breakdown(topology), {}).hidden_share();
}

void add_compute(Tally& tally, std::size_t worker, int begin, int end) {
  tally.computed(NodeId(worker), LayerId(0), 0, Pass::kForward, Time(begin), Time(end));
}

TEST(TotalsTest, SharesWhatLiesInComputeToo) {
  const Topology topology(2, 1, 0);
  Tally tally(topology);
  add_compute(tally, 0, 0, 10);
  add_compute(tally, 0, 20, 30);
  tally.sent(passing_message(0, 3), Time(5), Time(15));
  tally.received(passing_message(3, 0), Time(17), Time(25));
  EXPECT_DOUBLE_EQ(hidden_share(topology, tally), 10.0 / 18);
}

TEST(TotalsTest, HostsWithoutWorkersDoNotCount) {
  const Topology topology(1, 1, 1);
  Tally tally(topology);
  add_compute(tally, 0, 0, 10);
  tally.sent(passing_message(0, 1), Time(0), Time(10));
  tally.worked(counted_work(1), Time(10), Time(1000));
  EXPECT_EQ(tally.host(HostId(1)).communication, Duration(990));
  EXPECT_DOUBLE_EQ(hidden_share(topology, tally), 1);
}

TEST(TotalsTest, SilenceHidesAll) {
  const Topology topology(2, 1, 0);
  EXPECT_DOUBLE_EQ(hidden_share(topology, Tally(topology)), 1);
}

// A run that is 20 iterations longer has 20 times the increase of one that is one iteration longer:
// nothing depends on how runs begin and end.
TEST(TotalsTest, DifferencesAreWhatFurtherIterationsAdd) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.bandwidth_gbps = 1;
  const Profile profile = testing::profile_of({100'000, 30}, 100, 200);
  const auto run = [&](Iteration iterations) {
    Tally tally(cluster.topology);
    Breakdown breakdown(cluster.topology);
    Tee both({&tally, &breakdown});
    const auto simulated = testing::run_simulated(
        profile, cluster, find_preset("slicing")->strategy, iterations, &both);
    return totals_of(cluster.topology, tally, breakdown, simulated.assembly.counters());
  };
  const RunTotals warm_up = run(4);
  RunTotals one = run(5);
  RunTotals twenty = run(24);
  one -= warm_up;
  twenty -= warm_up;
  for (const auto counter : kCounters) {
    EXPECT_EQ(twenty.counters.*counter, 20 * (one.counters.*counter));
  }
  EXPECT_GT(one.counters.messages, 0);
  for (std::size_t kind = 0; kind < one.sent.size(); ++kind) {
    EXPECT_EQ(twenty.sent[kind].messages, 20 * one.sent[kind].messages);
    EXPECT_EQ(twenty.sent[kind].bytes, 20 * one.sent[kind].bytes);
  }
  EXPECT_EQ(one.steady_compute, 2 * profile.compute());
  EXPECT_EQ(twenty.steady_compute, 20 * one.steady_compute);
  EXPECT_EQ(twenty.steady_waits.total(), 20 * one.steady_waits.total());
  EXPECT_EQ(twenty.communication, 20 * one.communication);
  EXPECT_EQ(twenty.hidden, 20 * one.hidden);
  EXPECT_GT(one.hidden, Duration(0));
  EXPECT_EQ(twenty.steady_hidden, twenty.hidden);
}

}  // namespace
}  // namespace sluice
