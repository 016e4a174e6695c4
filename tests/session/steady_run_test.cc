#include "session/steady_run.h"

#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "report/tee.h"
#include "session/simulated_job.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr Iteration kCounted = 8;  // a multiple of the period of easgd

Profile steady_profile() { return testing::profile_of({100'000, 0, 30, 60'000}, 100, 200); }

Cluster steady_cluster() {
  Cluster cluster;
  cluster.topology = Topology(3, 2, 0);
  cluster.bandwidth_gbps = 4;
  cluster.fragment_bytes = 50'000;
  return cluster;
}

StrategySpec steady_spec(const std::string& preset) {
  StrategySpec spec;
  spec.strategy = find_preset(preset)->strategy;
  spec.chosen.local_aggregation = true;
  return spec;
}

OrderedJson steady_summary(const Cluster& cluster, const std::string& preset) {
  const Profile profile = steady_profile();
  Record record;
  return simulate_steadily({.job = *simulated_job(steady_spec(preset), profile, cluster),
                            .profile = profile,
                            .cluster = cluster,
                            .preset = preset,
                            .iterations = kCounted},
                           record)
      .summary;
}

struct WholeRun {
  SimulationResult result;
  RunTotals totals;
};

WholeRun whole_run(const Cluster& cluster, const std::string& preset, Iteration iterations) {
  const Profile profile = steady_profile();
  Assembly assembly = assemble(*simulated_job(steady_spec(preset), profile, cluster));
  Tally tally(cluster.topology);
  Breakdown breakdown(cluster.topology);
  Tee both({&tally, &breakdown});
  auto result = simulate({.profile = profile,
                          .cluster = cluster,
                          .hosts = assembly.protocols,
                          .iterations = iterations,
                          .channel_order = assembly.job.strategy.order,
                          .observer = &both,
                          .seed = assembly.job.strategy.seed});
  return {std::move(result), totals_of(cluster.topology, tally, breakdown, assembly.counters())};
}

// Two runs of different lengths begin and end alike, so that they differ by the iterations that the
// longer one has more.
void expect_difference_of_runs(const Cluster& cluster, const std::string& preset) {
  SCOPED_TRACE(preset);
  const OrderedJson summary = steady_summary(cluster, preset);
  const WholeRun shorter = whole_run(cluster, preset, kSimulatedWarmUp);
  const WholeRun longer = whole_run(cluster, preset, kSimulatedWarmUp + kCounted);
  const auto& [of_longer, totals] = longer;
  const auto& [of_shorter, before] = shorter;
  EXPECT_EQ(summary["messages"], of_longer.messages - of_shorter.messages);
  EXPECT_EQ(summary["bytes"], of_longer.bytes - of_shorter.bytes);
  const auto seconds = [&](const char* share) {
    return summary[share].get<double>() * summary["iteration_us"].get<double>() * kCounted;
  };
  const Duration busy = cluster.allreduce ? of_longer.channel_busy - of_shorter.channel_busy
                                          : of_longer.egress_busy - of_shorter.egress_busy;
  EXPECT_NEAR(seconds("egress_utilisation"), to_us(busy), 1e-3);
  const OrderedJson& mechanism = summary["mechanism"];
  EXPECT_EQ(mechanism["messages"], totals.counters.messages - before.counters.messages);
  EXPECT_EQ(mechanism["updates"], totals.counters.updates - before.counters.updates);
  EXPECT_EQ(mechanism["local_messages"],
            totals.counters.local_messages - before.counters.local_messages);
  const auto each = static_cast<double>(cluster.topology.workers() * kCounted);
  const OrderedJson& breakdown = summary["breakdown"];
  EXPECT_NEAR(breakdown["computation_us"].get<double>() * each,
              to_us(totals.steady_compute - before.steady_compute), 1e-3);
  if (traits_of(find_preset(preset)->strategy.algorithm).coupling != Coupling::kLockStep) {
    return;  // there some workers are ahead of the last, whose starts count
  }
  const double waited = breakdown["local_aggregation_us"].get<double>() +
                        breakdown["global_aggregation_work_us"].get<double>() +
                        breakdown["global_aggregation_wait_us"].get<double>() +
                        breakdown["communication_exposed_us"].get<double>();
  EXPECT_NEAR(breakdown["computation_us"].get<double>() + waited, summary["iteration_us"],
              0.01 * summary["iteration_us"].get<double>());
}

TEST(SteadyRunTest, CountsWhatTheFurtherIterationsAdd) {
  for (const std::string preset :
       {"kvstore", "p3", "bsp", "asp", "ssp", "easgd", "gosgd", "wfbp", "p3-allreduce"}) {
    expect_difference_of_runs(steady_cluster(), preset);
  }
}

// A cadence is counted in whole turns, without its synchronous iterations.
TEST(SteadyRunTest, CountsEveryExchangeOfACadence) {
  const OrderedJson dense = steady_summary(steady_cluster(), "p3-allreduce");
  for (const auto& [preset, every] : {std::pair{"local-sgd", 8},
                                      {"post-local-sgd", 8},
                                      {"diloco", 30},
                                      {"streaming-diloco", 30}}) {
    SCOPED_TRACE(preset);
    const OrderedJson summary = steady_summary(steady_cluster(), preset);
    EXPECT_EQ(summary["iterations"], every);
    EXPECT_DOUBLE_EQ(summary["bytes_per_iteration"].get<double>() * every,
                     dense["bytes_per_iteration"].get<double>());
    EXPECT_EQ(summary["mechanism"]["outer_steps"],
              summary["mechanism"]["chunks_per_model"].get<int>() * 6);
    EXPECT_EQ(summary["mechanism"]["cadence"]["every"], every);
    EXPECT_LT(summary["iteration_us"], dense["iteration_us"]);
    EXPECT_GE(summary["iteration_us"], summary["bound_us"]);
  }
  EXPECT_FALSE(dense["mechanism"].contains("cadence"));
}

TEST(SteadyRunTest, CountsWhatPassesTheChannel) {
  Cluster cluster = steady_cluster();
  cluster.topology = Topology(3, 1, 0);
  cluster.fragment_bytes = 0;
  cluster.allreduce = AllReduceCost{.startup = from_us(100), .ns_per_byte = 2};
  expect_difference_of_runs(cluster, "p3-allreduce");
}

TEST(SteadyRunTest, CountsWhatGoesHopByHop) {
  Cluster cluster = steady_cluster();
  cluster.special_hosts = {{.index = 1, .latency = from_us(500)}};
  expect_difference_of_runs(cluster, "p3");
}

TEST(SteadyRunTest, LeavesOutOvertakingsOfTheWarmUp) {
  const auto overtakings = [](Iteration iterations, Iteration counted_from) {
    const Cluster cluster = steady_cluster();
    const Profile profile = steady_profile();
    Assembly assembly = assemble(*simulated_job(steady_spec("p3"), profile, cluster));
    for (const auto& host : assembly.hosts) {
      host->count_from(counted_from);
    }
    simulate({.profile = profile,
              .cluster = cluster,
              .hosts = assembly.protocols,
              .iterations = iterations});
    const Counters counters = assembly.counters();
    return counters.egress_overtakings + counters.inbox_overtakings;
  };
  EXPECT_GT(overtakings(6, 0), 0);
  EXPECT_GT(overtakings(6, 4), 0);
  EXPECT_LT(overtakings(6, 4), overtakings(6, 0));
  EXPECT_EQ(overtakings(6, 7), 0);
}

}  // namespace
}  // namespace sluice
