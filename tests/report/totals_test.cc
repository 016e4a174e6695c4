#include "report/totals.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
