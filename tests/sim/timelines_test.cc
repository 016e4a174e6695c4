// The papers' own time lines, to the unit. One unit is one microsecond.
#include <gtest/gtest.h>

#include "support/simulated.h"

namespace sluice {
namespace {

using testing::point;
using testing::profile_of;
using testing::run_simulated;

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

// P3, Figure 6: push, update and pull take 1 for each parameter; layers of 1, 3 and 1.
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

}  // namespace
}  // namespace sluice
