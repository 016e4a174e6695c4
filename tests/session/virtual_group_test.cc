// The same training on threads and on a simulated cluster.
#include "session/virtual_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/presets.h"
#include "session/thread_group.h"
#include "session/training.h"
#include "support/simulated.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::int64_t> kVirtualLayers{40, 700, 30};
const UpdateRule kVirtualRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

VirtualCluster virtual_cluster(const Topology& topology, std::size_t threads = 2) {
  VirtualCluster virtually;
  virtually.profile = testing::profile_of(kVirtualLayers, 100, 200);
  virtually.cluster.topology = topology;
  virtually.cluster.bandwidth_gbps = 0.1;
  virtually.threads = threads;
  return virtually;
}

// What all workers end with.
using Replicas = std::vector<std::vector<float>>;

class VirtualGroupThreadsTest : public ::testing::Test {
 protected:
  Replicas train(ProcessGroup& group, Strategy strategy) {
    strategy.slice_params = 100;
    strategy.segment_params = 100;
    const auto learners = testing::toy_learners(kVirtualLayers, topology_.workers());
    Job job;
    job.layers = learners.front()->layers();
    job.topology = topology_;
    job.strategy = strategy;
    facts_ = group.tune(job, {.slice = true, .segment = true});
    const Clock clock;
    const Extent extent{
        .workers = topology_.workers(), .iterations = 9, .per_epoch = 3, .samples_per_epoch = 1};
    trained_ = run_training(job, {.group = group,
                                  .learners = learners,
                                  .rule = kVirtualRule,
                                  .extent = extent,
                                  .clock = clock});
    Replicas replicas;
    for (const auto& learner : learners) {
      const auto values = learner->parameters();
      replicas.emplace_back(values.begin(), values.end());
    }
    return replicas;
  }

  Replicas virtually(const Strategy& strategy, std::size_t threads) {
    const auto group = make_virtual_group(virtual_cluster(topology_, threads));
    return train(*group, strategy);
  }

  Topology topology_ = Topology(5, 1, 0);
  NetworkFacts facts_;
  Trained trained_;
};

TEST_F(VirtualGroupThreadsTest, SynchronousPresetsGiveTheBitsOfThreads) {
  const auto group = make_thread_group();
  for (const char* preset : {"p3", "kvstore", "bsp", "p3-allreduce", "pipe-sgd", "ps-sync"}) {
    SCOPED_TRACE(preset);
    Strategy strategy = find_preset(preset)->strategy;
    strategy.collective = Collective::kRing;
    EXPECT_EQ(virtually(strategy, 2), train(*group, strategy));
  }
}

TEST_F(VirtualGroupThreadsTest, TheNumberOfThreadsDoesNotMatter) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Replicas one = virtually(preset.strategy, 1);
    EXPECT_EQ(virtually(preset.strategy, 3), one);
    EXPECT_EQ(virtually(preset.strategy, 0), one);
  }
}

TEST_F(VirtualGroupThreadsTest, GroupsOfLayersArePlannedBeforehand) {
  virtually(find_preset("mg-wfbp")->strategy, 2);
  ASSERT_TRUE(facts_.merging);
  EXPECT_EQ(groups_of(trained_.assembly).size(), trained_.assembly.chunks->size());
  EXPECT_FALSE(trained_.assembly.job.groups.empty());
  EXPECT_FALSE(trained_.merging) << "nothing was measured";
}

TEST_F(VirtualGroupThreadsTest, TheClockIsTheSimulators) {
  const auto group = make_virtual_group(virtual_cluster(topology_));
  EXPECT_EQ(group->virtual_now(), Time{0});
  train(*group, find_preset("p3")->strategy);
  EXPECT_GE(*group->virtual_now(), 9 * from_us(900));
  EXPECT_LE(*group->virtual_now(), 9 * from_us(5000));
  EXPECT_EQ(make_thread_group()->virtual_now(), std::nullopt);
}

TEST_F(VirtualGroupThreadsTest, TheProfileMustBeOfTheModel) {
  const auto group = make_virtual_group(virtual_cluster(topology_));
  const auto complaint = [&](const std::vector<std::int64_t>& params) {
    const auto fits = group->fits([&] { return testing::profile_of(params, 1, 1).layout(); });
    return fits ? std::string() : fits.error().message();
  };
  EXPECT_EQ(complaint(kVirtualLayers), "");
  EXPECT_THAT(complaint({40, 700}),
              StartsWith("profile made: has 3 layers, and the model has 2; "));
  EXPECT_THAT(complaint({40, 701, 30}),
              HasSubstr("layer L2 has 700 parameters, and layer L2 of the model has 701"));
}

}  // namespace
}  // namespace sluice
