// The simulator against Pipe-SGD's timing models (Eq. 3-7) and the traffic of the Analysis paper's
// Table I.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "nodes/presets.h"
#include "planner/closed_forms.h"
#include "support/generators.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using testing::job_for;
using testing::profile_of;
using testing::run_simulated;

// Half of them is a multiple of every depth: a pipeline may run in bursts.
constexpr Iteration kManyIterations = 120;

double whole(int min, int max) { return static_cast<double>(*rc::gen::inRange(min, max)); }

bool near(Duration a, Duration b) { return std::chrono::abs(a - b) <= from_ns(2); }

Strategy pipeline(Iteration depth, Partition partition) {
  Strategy strategy = find_preset("pipe-sgd")->strategy;
  strategy.pipeline_depth = depth;
  strategy.partition = partition;
  return strategy;
}

// A serial link: the resource limit of Eq. 4.
Cluster one_link(std::size_t workers, const AllReduceCost& cost) {
  Cluster cluster;
  cluster.topology = Topology(workers, 1, 0);
  cluster.allreduce = cost;
  cluster.sync = from_us(whole(0, 20));
  return cluster;
}

AllReduceCost any_cost() { return {from_us(whole(0, 100)), whole(0, 50) / 10}; }

RC_GTEST_PROP(PipelineEquations, LimitedResourcesAreEquation4ForAnyDepth, ()) {
  const Cluster cluster = one_link(*rc::gen::inRange<std::size_t>(1, 5), any_cost());
  const Profile profile =
      profile_of({*rc::gen::inRange<std::int64_t>(1, 20'000)}, whole(0, 100), whole(1, 100));
  const Bytes bytes = total_params(profile.layout()) * kFloatBytes;
  const Stages stages{Duration{0}, profile.compute(),
                      segmented_all_reduce(*cluster.allreduce, bytes, 1, cluster.sync)};
  // A deeper pipeline takes long to fill if the link is only just too slow.
  const bool fills = stages.communicate <= stages.compute ||
                     to_us(stages.communicate) > 1.1 * to_us(stages.compute);
  for (const Iteration depth : {2, 3, 5}) {
    const auto run =
        run_simulated(profile, cluster, pipeline(depth, Partition::kWhole), kManyIterations);
    RC_ASSERT(near(run.result.iteration_time(), pipelined_iteration(stages)) ||
              (depth > 2 && !fills));
  }
  // Eq. 7: a single worker is never held up.
  const double efficiency =
      to_seconds(profile.compute()) /
      to_seconds(run_simulated(profile, cluster, pipeline(2, Partition::kWhole), kManyIterations)
                     .result.iteration_time());
  RC_ASSERT(std::abs(efficiency - scaling_efficiency(stages)) < 1e-6);
}

// If only the latency counts, sums overlap without limit, and a pipeline of depth K does K
// iterations in the time of one.
RC_GTEST_PROP(PipelineEquations, UnlimitedResourcesAreEquation3, ()) {
  Cluster cluster;
  cluster.topology = Topology(2, 1, 0);
  cluster.bandwidth_gbps = 1e9;
  cluster.header_bytes = 0;
  cluster.reduce_ns_per_byte = 0;
  cluster.update_ns_per_byte = 1;
  cluster.server_threads = 8;  // or a hop would wait for the update of another iteration
  const Profile profile = profile_of({1000}, whole(1, 20), whole(1, 20));
  const Duration update = from_us(4);
  const auto depth = *rc::gen::inRange<Iteration>(1, 5);
  const double compute_us = to_us(profile.compute() + update);
  cluster.latency = from_us((compute_us * static_cast<double>(depth) + whole(0, 100)) / 2);
  Strategy strategy = pipeline(depth, Partition::kWhole);
  strategy.collective = Collective::kRing;
  const Stages stages{update, profile.compute(), 2 * cluster.latency};
  const auto run = run_simulated(profile, cluster, strategy, kManyIterations);
  const double expected = to_us(ideal_pipelined_iteration(stages, depth));
  RC_ASSERT(std::abs(to_us(run.result.iteration_time()) / expected - 1) < 0.02);
}

// Eq. 5 and 6: bound by communication, each segment pays its start-up.
RC_GTEST_PROP(PipelineEquations, SegmentsPayTheirStartUps, ()) {
  const AllReduceCost cost{from_us(whole(50, 200)), 1};
  const Cluster cluster = one_link(3, cost);
  const auto layers = *rc::gen::inRange<std::size_t>(1, 6);
  const Profile profile = profile_of(std::vector<std::int64_t>(layers, 5000), 1, 1);
  const Bytes bytes = total_params(profile.layout()) * kFloatBytes;
  const auto time = [&](Partition partition) {
    return run_simulated(profile, cluster, pipeline(2, partition), kManyIterations)
        .result.iteration_time();
  };
  const auto segments = static_cast<std::int64_t>(layers);
  RC_ASSERT(near(time(Partition::kWhole), segmented_all_reduce(cost, bytes, 1, cluster.sync)));
  RC_ASSERT(
      near(time(Partition::kLayer), segmented_all_reduce(cost, bytes, segments, cluster.sync)));
}

// One code for all that a hop of the ring carries, however long the vector is.
TEST(PipeSgd, AHopCarriesItsWholeBlock) {
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = 10;
  cluster.header_bytes = 0;
  const Profile profile = profile_of({3'000'000, 1'000'000}, 500, 500);
  for (const char* preset : {"d-sync+q", "pipe-sgd+q"}) {
    const auto run = run_simulated(profile, cluster, find_preset(preset)->strategy, 10);
    EXPECT_EQ(run.result.messages, 10 * 4 * 2 * 3) << preset;
    EXPECT_EQ(run.result.bytes, run.result.messages * (1'000'000 + 4)) << preset;
  }
}

// ---- Table I ------------------------------------------------------------------------------------

// How often the model crosses the network per iteration and worker. The network is fast, so that
// all workers stay in step, and the servers are on hosts of their own.
double traffic(Strategy strategy, std::size_t workers) {
  Cluster cluster;
  const bool servers = strategy.uses_servers();
  cluster.topology = Topology(workers, 1, servers ? 1 : 0);
  cluster.bandwidth_gbps = 1e6;
  cluster.latency = Duration{0};
  cluster.header_bytes = 0;
  const Profile profile = profile_of({3000, 700}, 500, 500);
  const Iteration iterations = 240;
  const auto run = run_simulated(profile, cluster, strategy, iterations);
  const auto model = static_cast<double>(total_params(profile.layout()) * kFloatBytes);
  return static_cast<double>(run.result.bytes) /
         (model * static_cast<double>(workers) * static_cast<double>(iterations));
}

TEST(TableOne, CentralisedAlgorithms) {
  EXPECT_DOUBLE_EQ(traffic(find_preset("bsp")->strategy, 4), bsp_traffic(1));
  EXPECT_DOUBLE_EQ(traffic(find_preset("asp")->strategy, 4), kAspTraffic);
  Strategy ssp = find_preset("ssp")->strategy;
  for (const Iteration staleness : {0, 1, 3, 5}) {
    ssp.staleness = staleness;
    const double min = ssp_traffic(static_cast<double>(staleness));
    EXPECT_DOUBLE_EQ(traffic(ssp, 1), min) << staleness;
    // With other workers, a worker may learn of a slowest that is behind, and asks sooner.
    EXPECT_GE(traffic(ssp, 4), min) << staleness;
    EXPECT_LE(traffic(ssp, 4), kAspTraffic) << staleness;
  }
  Strategy easgd = find_preset("easgd")->strategy;
  for (const Iteration period : {1, 2, 8}) {
    easgd.period = period;
    EXPECT_DOUBLE_EQ(traffic(easgd, 4), easgd_traffic(static_cast<double>(period)));
  }
}

// Beside it: a sum once in so many iterations, whole or in fragments, applied at once or later.
TEST(TableOne, LocalStepsDivideTheTrafficOfASum) {
  Strategy strategy = find_preset("local-sgd")->strategy;
  strategy.collective = Collective::kRing;
  strategy.cadence = {};
  const double dense = traffic(strategy, 4);
  EXPECT_DOUBLE_EQ(dense, traffic(find_preset("d-sync")->strategy, 4));
  for (const Iteration every : {2, 8, 30}) {
    for (const std::int64_t fragments : {1, 2}) {
      strategy.cadence = {.every = every, .fragments = fragments, .delay = every - 1};
      EXPECT_DOUBLE_EQ(traffic(strategy, 4), dense / static_cast<double>(every));
      strategy.cadence.delay = 0;
      EXPECT_DOUBLE_EQ(traffic(strategy, 4), dense / static_cast<double>(every));
    }
  }
}

TEST(TableOne, LocalAggregationDividesByTheWorkersOfAMachine) {
  Cluster cluster;
  cluster.topology = Topology(2, 3, 1);
  cluster.bandwidth_gbps = 10;
  cluster.header_bytes = 0;
  const Profile profile = profile_of({3000, 700}, 500, 500);
  Strategy strategy = find_preset("bsp")->strategy;
  strategy.local_aggregation = true;
  const auto run = run_simulated(profile, cluster, strategy, 10);
  const double model = 3700.0 * kFloatBytes;
  EXPECT_DOUBLE_EQ(static_cast<double>(run.result.bytes), bsp_traffic(3) * model * 6 * 10);
}

TEST(TableOne, DecentralisedAlgorithms) {
  Strategy gossip = find_preset("gosgd")->strategy;
  for (const double probability : {0.1, 0.5, 1.0}) {
    gossip.gossip_probability = probability;
    // 4 workers x 240 draws: three standard deviations.
    const double spread = 3 * std::sqrt(probability * (1 - probability) / 960);
    EXPECT_NEAR(traffic(gossip, 4), gossip_traffic(probability), spread + 0.01);
  }
  // Half of the workers send and get an answer in every iteration.
  EXPECT_DOUBLE_EQ(traffic(find_preset("ad-psgd")->strategy, 4), kPairwiseTraffic);
}

// However slow the network and however far the workers are out of step.
TEST(TableOne, AnActiveWorkerSwapsOncePerIteration) {
  const Profile profile = profile_of({30'000, 7000}, 500, 500);
  const double model = 37'000.0 * kFloatBytes;
  for (const double gbps : {0.1, 1.0, 10.0}) {
    Cluster cluster;
    cluster.topology = Topology(4, 1, 0);
    cluster.bandwidth_gbps = gbps;
    cluster.header_bytes = 0;
    for (const std::vector<double>& slowdowns :
         {std::vector<double>{}, {1, 1, 1, 1.5}, {1.3, 1, 1, 2}, {1, 10, 1, 10}}) {
      const Job job = job_for(profile, cluster, find_preset("ad-psgd")->strategy);
      const Assembly assembly = assemble(job);
      const SimulationResult result = simulate({.profile = profile,
                                                .cluster = cluster,
                                                .hosts = assembly.protocols,
                                                .iterations = 40,
                                                .slowdowns = slowdowns});
      EXPECT_DOUBLE_EQ(static_cast<double>(result.bytes), 2 * 2 * model * 40) << gbps;
    }
  }
}

}  // namespace
}  // namespace sluice
