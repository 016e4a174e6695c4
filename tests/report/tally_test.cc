#include "report/tally.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace sluice {
namespace {

constexpr LayerId kLayer{0};

Message message(std::size_t from, std::size_t to, Bytes bytes = 4,
                MessageKind kind = MessageKind::kPush) {
  Message m;
  m.kind = kind;
  m.from = NodeId(from);
  m.to = NodeId(to);
  m.payload_bytes = bytes;
  return m;
}

Work work_of(std::size_t node) {
  Work work;
  work.node = NodeId(node);
  return work;
}

void compute(Tally& tally, std::size_t worker, int begin, int end, Iteration iteration = 0) {
  tally.computed(NodeId(worker), kLayer, iteration, Pass::kForward, Time(begin), Time(end));
}

// Two hosts with a worker (0, 1) and a server (2, 3) each.
const Topology kTwoHosts(2, 1, 0);

TEST(TallyTest, AddsUpWorkers) {
  Tally tally(kTwoHosts);
  compute(tally, 0, 0, 10);
  compute(tally, 0, 15, 20);
  compute(tally, 1, 0, 7);
  tally.waited(NodeId(0), kLayer, 0, Time(10), Time(15));
  EXPECT_EQ(tally.worker(0).compute, Duration(15));
  EXPECT_EQ(tally.worker(0).waited, Duration(5));
  EXPECT_EQ(tally.worker(1).compute, Duration(7));
  EXPECT_EQ(tally.worker(1).waited, Duration(0));
}

TEST(TallyTest, TakesUpWhatAnotherProcessHasSeen) {
  Tally there(kTwoHosts);
  compute(there, 1, 0, 10);
  there.waited(NodeId(1), kLayer, 0, Time(10), Time(15));
  there.sent(message(1, 2, 100), Time(5), Time(20));
  there.received(message(2, 1), Time(20), Time(30));
  there.worked(work_of(3), Time(40), Time(41));
  Tally here(kTwoHosts);
  here.sent(message(0, 3, 50), Time(0), Time(1));
  here.adopt(HostId(1), there.report(HostId(1)));
  EXPECT_EQ(here.worker(1).compute, Duration(10));
  EXPECT_EQ(here.worker(1).waited, Duration(5));
  const HostTally host = here.host(HostId(1));
  EXPECT_EQ(host.egress_busy, Duration(15));
  EXPECT_EQ(host.ingress_busy, Duration(10));
  EXPECT_EQ(host.work, Duration(1));
  EXPECT_EQ(host.communication, Duration(26));
  EXPECT_EQ(host.hidden, Duration(5));
  EXPECT_EQ(here.sent_by_kind()[static_cast<std::size_t>(MessageKind::kPush)], (Traffic{2, 150}));
}

TEST(TallyTest, AddsUpTrafficByKindAndHost) {
  Tally tally(kTwoHosts);
  tally.sent(message(0, 3, 100), Time(0), Time(10));
  tally.sent(message(0, 3, 50), Time(5), Time(20));
  tally.sent(message(3, 0, 8, MessageKind::kParameters), Time(0), Time(1));
  tally.received(message(0, 3, 100), Time(2), Time(12));
  const auto push = static_cast<std::size_t>(MessageKind::kPush);
  const auto parameters = static_cast<std::size_t>(MessageKind::kParameters);
  EXPECT_EQ(tally.host(HostId(0)).sent[push], (Traffic{2, 150}));
  EXPECT_EQ(tally.host(HostId(0)).sent[parameters], Traffic{});
  EXPECT_EQ(tally.host(HostId(1)).sent[parameters], (Traffic{1, 8}));
  EXPECT_EQ(tally.sent_by_kind()[push], (Traffic{2, 150}));
  EXPECT_EQ(tally.host(HostId(0)).egress_busy, Duration(20)) << "overlapping messages count once";
  EXPECT_EQ(tally.host(HostId(0)).ingress_busy, Duration(0));
  EXPECT_EQ(tally.host(HostId(1)).ingress_busy, Duration(10));
}

TEST(TallyTest, WorkMayRunSideBySide) {
  Tally tally(kTwoHosts);
  tally.worked(work_of(2), Time(0), Time(10));
  tally.worked(work_of(2), Time(5), Time(15));
  EXPECT_EQ(tally.host(HostId(0)).work, Duration(20));
  EXPECT_EQ(tally.host(HostId(0)).communication, Duration(15));
}

// Time   0    5    10   15   20   25   30
// K      [compute ]          [compute ]
// C           [sent    ]  [recv  ]
// hidden      [    ]         [   ]
TEST(TallyTest, HiddenIsWhatLiesInComputeToo) {
  Tally tally(kTwoHosts);
  compute(tally, 0, 0, 10);
  compute(tally, 0, 20, 30);
  tally.sent(message(0, 3), Time(5), Time(15));
  tally.received(message(3, 0), Time(17), Time(25));
  EXPECT_EQ(tally.host(HostId(0)).communication, Duration(18));
  EXPECT_EQ(tally.host(HostId(0)).hidden, Duration(10));
}

TEST(TallyTest, TellsTheSteadyIterationsApart) {
  Tally tally(kTwoHosts, 1);
  compute(tally, 0, 0, 100, 0);
  compute(tally, 0, 110, 120, 1);
  tally.sent(message(0, 3), Time(90), Time(112));
  EXPECT_EQ(tally.worker(0).compute, Duration(110));
  EXPECT_EQ(tally.worker(0).steady_compute, Duration(10));
  Tally elsewhere(kTwoHosts, 1);
  elsewhere.adopt(HostId(0), tally.report(HostId(0)));
  for (const Tally* seen : {&tally, &elsewhere}) {
    EXPECT_EQ(seen->worker(0).steady_compute, Duration(10));
    EXPECT_EQ(seen->host(HostId(0)).hidden, Duration(12));
    EXPECT_EQ(seen->host(HostId(0)).steady_hidden, Duration(2));
  }
}

TEST(TallyTest, CopiesToAcceleratorsAreNoCommunication) {
  Tally tally(kTwoHosts);
  tally.copied(NodeId(0), kLayer, 0, Passage::kToDevice, Time(8), Time(12));
  tally.copied(NodeId(0), kLayer, 0, Passage::kFromDevice, Time(11), Time(14));
  compute(tally, 0, 10, 13);
  EXPECT_EQ(tally.host(HostId(0)).copies, Duration(6));
  EXPECT_EQ(tally.host(HostId(0)).copies_hidden, Duration(3));
  EXPECT_EQ(tally.host(HostId(0)).communication, Duration(0));
  EXPECT_EQ(tally.host(HostId(1)).copies, Duration(0));
  Tally elsewhere(kTwoHosts);
  elsewhere.adopt(HostId(0), tally.report(HostId(0)));
  EXPECT_EQ(elsewhere.host(HostId(0)).copies, Duration(6));
  EXPECT_EQ(elsewhere.host(HostId(0)).copies_hidden, Duration(3));
}

TEST(TallyTest, AnyWorkerOfTheHostHides) {
  Tally tally(Topology(1, 2, 1));
  compute(tally, 0, 0, 10);
  compute(tally, 1, 5, 20);
  tally.sent(message(0, 2), Time(0), Time(40));
  EXPECT_EQ(tally.host(HostId(0)).hidden, Duration(20));
}

// A long run of short spans with gaps, in little memory, compared to ticks counted one by one.
RC_GTEST_PROP(TallyProperty, SettlingEarlyChangesNothing, ()) {
  Tally tally(Topology(1, 2, 1), 1, 8);
  std::set<int> computing;
  std::set<int> steady;
  std::set<int> communicating;
  int now = 0;
  for (int i = 0; i < 300; ++i) {
    now += *rc::gen::inRange(0, 4);
    const int end = now + *rc::gen::inRange(0, 6);
    const int what = *rc::gen::inRange(0, 4);
    if (what == 0) {
      // A worker's own spans come one after the other; both workers report, so that both are known.
      compute(tally, 0, now, end, i / 100);
      compute(tally, 1, end, end, i / 100);
    } else if (what == 1) {
      tally.sent(message(0, 2), Time(now), Time(end));
    } else if (what == 2) {
      tally.received(message(2, 0), Time(now), Time(end));
    } else {
      tally.worked(work_of(0), Time(now), Time(end));
    }
    for (int t = now; t < end; ++t) {
      (what == 0 ? computing : communicating).insert(t);
      if (what == 0 && i >= 100) {
        steady.insert(t);
      }
    }
    now += what == 0 ? end - now : 0;
  }
  std::int64_t hidden = 0;
  std::int64_t steady_hidden = 0;
  for (const int t : communicating) {
    hidden += computing.contains(t) ? 1 : 0;
    steady_hidden += steady.contains(t) ? 1 : 0;
  }
  RC_ASSERT(tally.host(HostId(0)).communication ==
            Duration(static_cast<std::int64_t>(communicating.size())));
  RC_ASSERT(tally.host(HostId(0)).hidden == Duration(hidden));
  RC_ASSERT(tally.host(HostId(0)).steady_hidden == Duration(steady_hidden));
}

}  // namespace
}  // namespace sluice
