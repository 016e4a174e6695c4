#include "planner/allreduce_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "collectives/cost.h"
#include "nodes/presets.h"
#include "support/nets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using testing::any_net;
using testing::anywhere;
using testing::job_for;

std::vector<Timing> line(double startup_us, double ns_per_byte, const std::vector<Bytes>& sizes) {
  std::vector<Timing> samples;
  for (const Bytes bytes : sizes) {
    samples.push_back(
        {bytes, from_us(startup_us) + from_ns(static_cast<double>(bytes) * ns_per_byte)});
  }
  return samples;
}

RC_GTEST_PROP(AllReduceFit, RecoversTheLineBehindMadeSamples, ()) {
  const auto startup = static_cast<double>(*anywhere(1, 500));
  const double slope = *rc::gen::element(0.05, 0.7, 3.0, 40.0);
  const AllReduceCost fit = fit_allreduce(line(startup, slope, {400, 1600, 40'000, 9'000'000}));
  RC_ASSERT(std::abs(to_us(fit.startup) - startup) <= 1e-4 * startup);
  RC_ASSERT(std::abs(fit.ns_per_byte - slope) <= 1e-4 * slope);
}

// An ordinary least-squares line would be far off at the small size.
TEST(AllReduceFit, TakesTheStartUpFromSmallSizesAndTheSlopeFromLargeOnes) {
  auto samples = line(100, 1, {100, 1000, 10'000'000, 40'000'000});
  samples.back().median += from_us(2000);  // 5 % off
  const AllReduceCost fit = fit_allreduce(samples);
  EXPECT_NEAR(to_us(fit.startup), 100, 3);
  EXPECT_NEAR(fit.ns_per_byte, 1, 0.06);
}

TEST(AllReduceFit, IsNeverNegative) {
  const std::vector<Timing> steep{{100, from_us(1)}, {200, from_us(5)}};
  EXPECT_EQ(fit_allreduce(steep).startup, Duration{0});
  EXPECT_GT(fit_allreduce(steep).ns_per_byte, 0);
  const std::vector<Timing> falling{{100, from_us(5)}, {200, from_us(1)}};
  EXPECT_GT(fit_allreduce(falling).startup, Duration{0});
  EXPECT_EQ(fit_allreduce(falling).ns_per_byte, 0);
}

// Sums that seem faster than the wire were measured too short.
TEST(AllReduceFit, IsNotBelowTheWire) {
  const double wire = wire_ns_per_byte(4, 1);
  EXPECT_DOUBLE_EQ(wire, 12);
  const auto honest = line(100, 13, {1000, 100'000, 10'000'000});
  EXPECT_NEAR(fit_allreduce(honest, wire).ns_per_byte, 13, 1e-3);
  const auto hasty = line(100, 9, {1000, 100'000, 10'000'000});
  const AllReduceCost fit = fit_allreduce(hasty, wire);
  EXPECT_DOUBLE_EQ(fit.ns_per_byte, wire);
  EXPECT_GT(fit.startup, Duration{0});
  EXPECT_LT(fit.startup, from_us(101));
  const std::vector<Timing> steep{{100, from_ns(100)}, {200, from_ns(2000)}};
  EXPECT_EQ(fit_allreduce(steep, wire).startup, Duration{0});
  EXPECT_DOUBLE_EQ(fit_allreduce(steep, wire).ns_per_byte, wire);
  EXPECT_DOUBLE_EQ(wire_ns_per_byte(1, 1), 0);
}

TEST(AllReduceFit, TellsHowFarItIsFromWhatWasMeasured) {
  const AllReduceCost cost{from_us(10), 1};
  EXPECT_NEAR(relative_error(cost, {10'000, from_us(20)}), 0, 1e-12);
  EXPECT_NEAR(relative_error(cost, {10'000, from_us(25)}), -0.2, 1e-12);
  EXPECT_NEAR(relative_error(cost, {0, from_us(5)}), 1, 1e-12);
}

TEST(AllReduceFit, OneSizeIsNoLine) {
  EXPECT_THROW(fit_allreduce(line(1, 1, {100, 100})), InvariantError);
}

RC_GTEST_PROP(SimulatedAllReduce, OfANamedCollectiveIsItsCostWithSyncAndUpdate, ()) {
  Profile profile = any_net(8);
  profile.layers.push_back({"last", 100'000, from_us(1), from_us(1)});
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = *rc::gen::element(1.0, 10.0);
  cluster.sync = from_us(static_cast<double>(*anywhere(0, 40)));
  Strategy strategy = find_preset("mg-wfbp")->strategy;
  strategy.collective = Collective::kRing;
  strategy.segment_params = 1 << 20;  // the closed forms have one segment
  const Job job = job_for(profile, cluster, strategy);
  const AllReduceCost ring = collective_cost(load_of(Collective::kRing, {.size = 4}), job.link);
  const AllReduceCost cost = simulated_allreduce(job, cluster).alone;
  const double startup = to_us(ring.startup + cluster.sync);
  RC_ASSERT(std::abs(to_us(cost.startup) - startup) <= 1e-3 * startup);
  const double slope = ring.ns_per_byte + cluster.update_ns_per_byte;
  RC_ASSERT(std::abs(cost.ns_per_byte - slope) <= 1e-3 * slope);
}

// The cheapest collective changes between the smallest and the largest sum, so no line fits all.
TEST(SimulatedAllReduce, OfTheCheapestLiesBetweenThem) {
  Cluster cluster;
  cluster.topology = Topology(8, 1, 0);
  cluster.bandwidth_gbps = 10;
  const Job job = job_for(testing::profile_of({100, 5'000'000}, 1, 1), cluster,
                          find_preset("mg-wfbp")->strategy);
  const AllReduceCost cost = simulated_allreduce(job, cluster).alone;
  const auto startup = [&](Collective c) {
    return collective_cost(load_of(c, {.size = 8}), job.link).startup;
  };
  EXPECT_GE(cost.startup, startup(Collective::kDirect) * 9 / 10);
  EXPECT_LT(cost.startup, startup(Collective::kRing));
}

// In a stream start-ups overlap, and only the bytes remain.
TEST(SimulatedAllReduce, AmongOthersHasHardlyAStartUp) {
  Cluster cluster;
  cluster.topology = Topology(5, 1, 0);
  cluster.bandwidth_gbps = 1;
  const Job job = job_for(testing::profile_of({100, 5'000'000}, 1, 1), cluster,
                          find_preset("mg-wfbp")->strategy);
  const auto [alone, busy] = simulated_allreduce(job, cluster);
  EXPECT_LT(busy.startup, alone.startup / 10);
  EXPECT_NEAR(busy.ns_per_byte, 1.6 * 8, 0.1);
  EXPECT_NEAR(busy.ns_per_byte, alone.ns_per_byte, 0.1 * busy.ns_per_byte);
}

// A made engine: the first sum of an iteration takes all of its time, each further one as long as
// it keeps the links busy.
StreamCost measured(const StreamCost& truth) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.bandwidth_gbps = 1;
  const Job job = job_for(testing::profile_of({100, 20'000, 300'000}, 1, 1), cluster,
                          find_preset("mg-wfbp")->strategy);
  return measured_allreduce(job, [&](const Assembly& assembly, Iteration last, Observer& observer) {
    const auto& layers = assembly.job.layers;
    const Bytes bytes = layers.front().range.size() * kFloatBytes;
    const Duration length = truth.alone.time(bytes) +
                            static_cast<std::int64_t>(layers.size() - 1) * truth.busy.time(bytes);
    for (Iteration i = 0; i < last; ++i) {
      const Time begin = i * length;
      observer.computed(NodeId(0), LayerId(0), i, Pass::kForward, begin, begin);
    }
  });
}

TEST(MeasuredAllReduce, SeesHowSumsOverlap) {
  const StreamCost cost = measured({.alone = {from_us(500), 2}, .busy = {from_us(40), 2}});
  EXPECT_NEAR(to_us(cost.alone.startup), 500, 5);
  EXPECT_NEAR(cost.alone.ns_per_byte, 2, 0.02);
  EXPECT_NEAR(to_us(cost.busy.startup), 40, 4);
  EXPECT_NEAR(cost.busy.ns_per_byte, 2, 0.02);
}

// On a busy machine many sums may take no longer than one did before.
TEST(MeasuredAllReduce, NoSumIsFree) {
  const StreamCost cost = measured({.alone = {from_us(500), 2}, .busy = {Duration{0}, 0}});
  EXPECT_NEAR(to_us(cost.busy.startup), 5, 0.1);
  EXPECT_NEAR(cost.busy.ns_per_byte, 0.02, 0.001);
}

TEST(SimulatedAllReduce, OfPackedGradientsIsThatOfFewerBytes) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.allreduce = AllReduceCost{from_us(10), 4};
  Job job = job_for(testing::profile_of({1000, 100'000}, 1, 1), cluster,
                    find_preset("mg-wfbp")->strategy);
  job.strategy.codec = Codec::kTruncate16;
  const AllReduceCost cost = simulated_allreduce(job, cluster).alone;
  EXPECT_NEAR(to_us(cost.startup), 10, 0.01);
  EXPECT_NEAR(cost.ns_per_byte, 2, 0.01);
}

TEST(SimulatedAllReduce, OfANetWithoutParametersIsStillALine) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.bandwidth_gbps = 1;
  const Job job =
      job_for(testing::profile_of({0, 0}, 1, 1), cluster, find_preset("mg-wfbp")->strategy);
  EXPECT_GT(simulated_allreduce(job, cluster).alone.startup, Duration{0});
}

}  // namespace
}  // namespace sluice
