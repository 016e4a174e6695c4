#include "planner/layer_times.h"

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace sluice {
namespace {

// A measurement in virtual time gives the simulated profile.
TEST(LayerTimes, AreThoseOfTheProfile) {
  Profile made;
  made.layers = {{"a", 100, from_us(3), from_us(5)},
                 {"b", 0, from_us(1), from_us(2)},
                 {"c", 4000, from_us(7), from_us(11)}};
  Cluster cluster;
  cluster.topology = Topology(3, 1, 0);
  cluster.bandwidth_gbps = 1;
  LayerTimes times(3, 3);
  const auto run = testing::run_simulated(
      made, cluster, testing::point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo), 10,
      &times);
  const Profile seen = times.profile(made.layout());
  ASSERT_EQ(seen.layers.size(), made.layers.size());
  for (std::size_t l = 0; l < seen.layers.size(); ++l) {
    EXPECT_EQ(seen.layers[l].name, made.layers[l].name);
    EXPECT_EQ(seen.layers[l].params, made.layers[l].params);
    EXPECT_EQ(seen.layers[l].forward, made.layers[l].forward);
    EXPECT_EQ(seen.layers[l].backward, made.layers[l].backward);
  }
  EXPECT_EQ(times.iteration(), run.result.iteration_time());
}

void see(LayerTimes& times, std::size_t worker, Iteration iteration, double at, double length) {
  times.computed(NodeId(worker), LayerId(0), iteration, Pass::kForward, from_us(at),
                 from_us(at + length));
}

TEST(LayerTimes, AreMeansOverWorkersWithoutTheFirstIteration) {
  LayerTimes times(2, 1);
  for (const std::size_t worker : {0U, 1U}) {
    see(times, worker, 8, 0, 100);
    see(times, worker, 9, 200, 2 + 4.0 * static_cast<double>(worker));
  }
  const std::vector<Layer> layers = lay_out({"only"}, {7});
  EXPECT_EQ(times.profile(layers).layers.front().forward, from_us(4));
  EXPECT_EQ(times.iteration(), Duration{0});
}

TEST(LayerTimes, OneLongIterationDoesNotCount) {
  LayerTimes times(1, 1);
  double at = 0;
  for (Iteration t = 0; t < 8; ++t) {
    see(times, 0, t, at, 1);
    at += t == 4 ? 5000 : 10;
  }
  EXPECT_EQ(times.iteration(), from_us(10));
}

// One of several processes sees only its own worker.
TEST(LayerTimes, TellTheIterationsOfTheFirstWorkerThatWasSeen) {
  LayerTimes times(3, 1);
  for (const Iteration t : {0, 1, 2, 3}) {
    see(times, 1, t, static_cast<double>(t * t), 0.5);
  }
  EXPECT_EQ(times.iterations(), (std::vector{from_us(3), from_us(5)}));
  EXPECT_EQ(LayerTimes(3, 1).iterations(), std::vector<Duration>{});
}

}  // namespace
}  // namespace sluice
