// The papers' own time lines, to the unit. One unit is one microsecond.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <vector>

#include "support/simulated.h"

namespace sluice {
namespace {

using testing::point;
using testing::profile_of;
using testing::run_simulated;
using testing::Simulated;

// P3, Figure 4: three layers, forward and backward 1 each, synchronisation 2 each.
class Figure4 : public ::testing::Test {
 protected:
  Figure4() {
    cluster_.topology = Topology(2, 1, 0);
    cluster_.allreduce = AllReduceCost{Duration{0}, 250.0};
  }

  Profile profile_ = profile_of({2, 2, 2}, 1, 1);
  Cluster cluster_;
};

TEST_F(Figure4, LayerByLayerTheDelayIsFour) {
  const auto run = run_simulated(profile_, cluster_,
                                 point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo));
  EXPECT_EQ(to_us(run.result.iteration_time()), 10.0);
}

TEST_F(Figure4, HalfLayersByPriorityTheDelayIsTwo) {
  const auto run = run_simulated(
      profile_, cluster_, point(Exchange::kAllReduce, Partition::kSlice, Order::kPriority, 1));
  EXPECT_EQ(to_us(run.result.iteration_time()), 8.0);
  EXPECT_GT(run.result.channel_overtakings, 0);
}

// P3, Figure 6: push, update and pull take 1 per parameter; layers of 1, 3 and 1.
class Figure6 : public ::testing::Test {
 protected:
  Figure6() {
    cluster_.topology = Topology(1, 1, 1);
    cluster_.bandwidth_gbps = 0.032;
    cluster_.latency = Duration{0};
    cluster_.header_bytes = 0;
    cluster_.update_ns_per_byte = 250;
    cluster_.server_threads = 8;
  }

  Profile profile_ = profile_of({1, 3, 1}, 0, 0);
  Cluster cluster_;
};

TEST_F(Figure6, WholeLayersTakeTen) {
  for (const auto& strategy :
       {point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo),
        point(Exchange::kPullAfterNotify, Partition::kKvstore, Order::kFifo)}) {
    const auto run = run_simulated(profile_, cluster_, strategy);
    EXPECT_EQ(to_us(run.result.iteration_time()), 10.0);
  }
}

TEST_F(Figure6, SlicesOfOneParameterTakeSeven) {
  for (const Order order : {Order::kFifo, Order::kPriority}) {
    const auto run =
        run_simulated(profile_, cluster_, point(Exchange::kBroadcast, Partition::kSlice, order, 1));
    EXPECT_EQ(to_us(run.result.iteration_time()), 7.0);
  }
}

// A layer of two and a layer of eight; one unit per parameter and for the latency.
class LongMessages : public ::testing::Test, public Observer {
 protected:
  LongMessages() {
    cluster_.topology = Topology(1, 1, 1);
    cluster_.bandwidth_gbps = 0.032;
    cluster_.latency = from_us(1);
    cluster_.header_bytes = 0;
    cluster_.update_ns_per_byte = 0;
  }

  void computed(NodeId, LayerId, Iteration, Pass, Time, Time) override {}
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message& message, Time begin, Time end) override {
    if (message.kind == MessageKind::kPush && message.iteration == 1) {
      leaves_.emplace_back(to_us(begin), to_us(end));
    }
  }
  void received(const Message& message, Time begin, Time end) override {
    if (message.kind == MessageKind::kPush && message.iteration == 1) {
      comes_.emplace_back(to_us(begin), to_us(end));
    }
  }
  void worked(const Work&, Time, Time) override {}

  void run() {
    run_simulated(profile_of({2, 8}, 0, 0), cluster_,
                  point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo), 1, this);
  }

  using Spans = std::vector<std::pair<double, double>>;
  Cluster cluster_;
  Spans leaves_;
  Spans comes_;
};

TEST_F(LongMessages, GoWholeInTheirOrder) {
  run();
  EXPECT_EQ(leaves_, (Spans{{0, 8}, {8, 10}}));
  EXPECT_EQ(comes_, (Spans{{1, 9}, {9, 11}}));
}

// The rendezvous of the long one is an announcement (until 1) and a request (until 2), while the
// short one goes; then the data goes without waiting.
TEST_F(LongMessages, AreAnnouncedAndAskedForWhileShortOnesGo) {
  cluster_.fragment_bytes = 8;
  run();
  EXPECT_EQ(leaves_, (Spans{{0, 2}, {2, 10}}));
  EXPECT_EQ(comes_, (Spans{{1, 3}, {3, 11}}));
}

// Both have been requested at 2. The first fragment of the longer one leaves at once, so it is
// first in the queue, and from its second fragment on they take turns.
TEST_F(LongMessages, TakeTurnsFragmentByFragment) {
  cluster_.fragment_bytes = 4;
  run();
  EXPECT_EQ(leaves_, (Spans{{4, 7}, {2, 12}}));
}

// Three workers push ten parameters to a server at the same time; the server receives one after
// the other. A push, an add and an update take ten each.
class GradualSum : public ::testing::Test, public Observer {
 protected:
  GradualSum() {
    cluster_.topology = Topology(3, 1, 1);
    cluster_.bandwidth_gbps = 0.032;
    cluster_.latency = Duration{0};
    cluster_.header_bytes = 0;
    cluster_.reduce_ns_per_byte = 250;
    cluster_.update_ns_per_byte = 250;
  }

  void computed(NodeId, LayerId, Iteration, Pass, Time, Time) override {}
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}
  void worked(const Work& work, Time begin, Time end) override {
    if (work.iteration == 1) {
      works_.push_back({work.kind, to_us(begin), to_us(end)});
    }
  }

  Simulated run(const Job& job) { return run_simulated(profile_, cluster_, job, 4, this); }

  using Works = std::vector<std::tuple<WorkKind, double, double>>;
  Profile profile_ = profile_of({10}, 0, 0);
  Cluster cluster_;
  Works works_;
};

TEST_F(GradualSum, BeginsBeforeTheLastGradientComes) {
  Job job = testing::job_for(profile_, cluster_,
                             point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo));
  EXPECT_EQ(to_us(run(job).result.iteration_time()), 60.0);
  EXPECT_EQ(works_, (Works{{WorkKind::kReduce, 20, 30}, {WorkKind::kUpdate, 30, 50}}));
  works_.clear();
  job.link.reduce_ns_per_byte = 0;  // as if a sum were not worth a unit of work
  EXPECT_EQ(to_us(run(job).result.iteration_time()), 70.0);
  EXPECT_EQ(works_, (Works{{WorkKind::kUpdate, 30, 60}}));
}

// A packed gradient is half as long; each of them takes ten to unpack.
TEST_F(GradualSum, UnpacksWhatItHas) {
  cluster_.code_ns_per_byte = 250;
  Strategy strategy = point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo);
  strategy.codec = Codec::kTruncate16;
  strategy.update = Update::kServer;
  run(testing::job_for(profile_, cluster_, strategy));
  const Works updated(works_.begin() + 3, works_.end());
  EXPECT_EQ(updated, (Works{{WorkKind::kReduce, 20, 40}, {WorkKind::kUpdate, 40, 60}}));
  works_.clear();
  strategy.update = Update::kWorker;
  run(testing::job_for(profile_, cluster_, strategy));
  const Works summed(works_.begin() + 3, works_.begin() + 6);
  EXPECT_EQ(summed, (Works{{WorkKind::kReduce, 20, 40},
                           {WorkKind::kSum, 40, 60},  // unpacks the last gradient, packs the sum
                           {WorkKind::kDecode, 65, 75}}));
}

}  // namespace
}  // namespace sluice
