#include "session/simulated_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "planner/tuning.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const Profile kNet{.name = "net",
                   .batch = 1,
                   .device = "",
                   .source = "",
                   .layers = {{.name = "a", .params = 3'000'000, .forward = from_us(100)},
                              {.name = "b", .params = 10, .backward = from_us(200)},
                              {.name = "c", .params = 10, .backward = from_us(1)}}};

Cluster cluster_of(std::size_t hosts) {
  Cluster cluster;
  cluster.topology = Topology(hosts, 1, 0);
  cluster.bandwidth_gbps = 1;
  cluster.server_threads = 3;
  return cluster;
}

StrategySpec spec_of(const std::string& preset) {
  return {.preset = preset, .strategy = find_preset(preset)->strategy, .chosen = {}};
}

std::string complaint(const StrategySpec& spec, const Cluster& cluster) {
  const auto job = simulated_job(spec, kNet, cluster);
  return job ? "" : job.error().message();
}

TEST(SimulatedJobTest, HasTheLayersTheHostsAndTheLink) {
  const Cluster cluster = cluster_of(4);
  const auto job = simulated_job(spec_of("p3"), kNet, cluster);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->layers.size(), 3U);
  EXPECT_EQ(job->topology.workers(), 4U);
  EXPECT_EQ(job->server_threads, 3);
  EXPECT_EQ(job->link, cluster.link());
  EXPECT_EQ(job->strategy.slice_params, find_preset("p3")->strategy.slice_params);
}

TEST(SimulatedJobTest, SuitsANetworkWhereLengthHasAPrice) {
  Cluster cluster = cluster_of(4);
  cluster.fragment_bytes = 65'536;
  StrategySpec spec = spec_of("p3");
  const auto usual = simulated_job(spec, kNet, cluster);
  ASSERT_TRUE(usual);
  EXPECT_NE(usual->strategy.slice_params, spec.strategy.slice_params);
  spec.chosen.slice = true;
  const auto chosen = simulated_job(spec, kNet, cluster);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->strategy.slice_params, spec.strategy.slice_params);
}

// What trains there cuts the same chunks: see MpiGroup::tune().
TEST(SimulatedJobTest, JoinsTinyLayersAsARunOnSuchMachinesDoes) {
  Cluster cluster = cluster_of(4);
  cluster.fragment_bytes = 65'536;
  for (const char* preset : {"p3", "slicing", "p3-allreduce", "wfbp"}) {
    const StrategySpec spec = spec_of(preset);
    const auto simulated = simulated_job(spec, kNet, cluster);
    ASSERT_TRUE(simulated);
    Job trained{.layers = kNet.layout(), .topology = cluster.topology, .strategy = spec.strategy};
    trained.link = cluster.link();
    tune_for_link(trained, spec.chosen);
    EXPECT_EQ(simulated->strategy.join_params, trained.strategy.join_params);
    EXPECT_EQ(trained.strategy.join_params > 0, preset != std::string("wfbp"));
  }
}

TEST(SimulatedJobTest, AChannelStandsInForTheNetwork) {
  Cluster cluster = cluster_of(4);
  cluster.allreduce = AllReduceCost{.startup = from_us(100), .ns_per_byte = 1};
  const auto job = simulated_job(spec_of("p3"), kNet, cluster);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->strategy.exchange, Exchange::kAllReduce);
  EXPECT_EQ(job->strategy.collective, Collective::kNative);
  EXPECT_THAT(complaint(spec_of("kvstore"), cluster), HasSubstr("partition kvstore"));
  StrategySpec local = spec_of("wfbp");
  local.strategy.local_aggregation = true;
  EXPECT_TRUE(simulated_job(local, kNet, cluster)) << "there is nothing to sum on a host";
  cluster.topology = Topology(2, 2, 0);
  EXPECT_THAT(complaint(local, cluster), HasSubstr("local-aggregation: "));
}

TEST(SimulatedJobTest, RefusesSumsThatNoMessageMakes) {
  StrategySpec spec = spec_of("wfbp");
  spec.strategy.collective = Collective::kNative;
  EXPECT_THAT(complaint(spec, cluster_of(4)), HasSubstr("collective: native"));
}

TEST(SimulatedJobTest, FactorsNeedAMatrix) {
  EXPECT_THAT(complaint(spec_of("powersgd"), cluster_of(4)), HasSubstr("make the profile anew"));
  Profile net = kNet;
  net.layers.front().matrix = {0, 1000, 3000};
  const auto job = simulated_job(spec_of("powersgd"), net, cluster_of(4));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->layers.front().matrix, net.layers.front().matrix);
  Cluster channel = cluster_of(4);
  channel.allreduce = AllReduceCost{.startup = from_us(100), .ns_per_byte = 1};
  EXPECT_THAT(complaint(spec_of("powersgd"), channel), HasSubstr("collective native"));
}

TEST(SimulatedJobTest, PlansTheGroupsOfAMergedJob) {
  Cluster cluster = cluster_of(4);
  cluster.allreduce = AllReduceCost{.startup = from_us(1000), .ns_per_byte = 0.01};
  auto made = simulated_job(spec_of("mg-wfbp"), kNet, cluster);
  ASSERT_TRUE(made);
  Job job = *std::move(made);
  const Merging merging = plan_groups(job, kNet, cluster);
  // A sum that is dear to begin is worth waiting for all layers.
  EXPECT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(merging.cost.alone.startup, from_us(1000));
  EXPECT_EQ(merging.as, MergedAs::kWhole);
  EXPECT_GT(merging.predicted, kNet.compute());
}

}  // namespace
}  // namespace sluice
