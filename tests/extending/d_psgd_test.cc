#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "drivers/virtual/bound.h"
#include "nodes/validate.h"
#include "support/shuffled.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const std::vector<std::int64_t> kSizes{5, 40, 0, 17};
constexpr Iteration kSteps = 6;
constexpr float kRate = 0.05F;
constexpr std::int64_t kSlice = 16;

Strategy d_psgd() {
  Strategy strategy;
  strategy.algorithm = Algorithm::kDPsgd;
  strategy.exchange = Exchange::kGossip;
  strategy.slice_params = kSlice;
  return strategy;
}

// The paper's recurrence in two plain loops.
std::vector<std::vector<float>> reference(std::size_t workers) {
  const auto learners = testing::toy_learners(kSizes, 1);
  const auto initial = learners.front()->parameters();
  std::vector<std::vector<float>> x(workers, {initial.begin(), initial.end()});
  for (Iteration t = 0; t < kSteps; ++t) {
    for (std::size_t w = 0; w < workers; ++w) {
      for (std::size_t i = 0; i < x[w].size(); ++i) {
        x[w][i] -= kRate * testing::ToyLearner::gradient(x[w][i], i, w, t);
      }
    }
    const auto stepped = x;
    for (std::size_t w = 0; w < workers; ++w) {
      const std::set<std::size_t> mixed{(w + workers - 1) % workers, w, (w + 1) % workers};
      for (std::size_t i = 0; i < x[w].size(); ++i) {
        x[w][i] = 0;
        for (const std::size_t of : mixed) {
          x[w][i] += stepped[of][i] / static_cast<float>(mixed.size());
        }
      }
    }
  }
  return x;
}

RC_GTEST_PROP(DPsgd, IsThePapersRecurrenceWhateverComesFirst, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 6);
  auto learners = testing::toy_learners(kSizes, workers);
  Job job;
  job.layers = learners.front()->layers();
  job.topology = Topology(workers, 1, 0);
  job.strategy = d_psgd();
  const Assembly assembly = assemble(job);
  const VirtualNumbers numbers{.learners = learners,
                               .chunks = assembly.chunks.get(),
                               .rule = {.rate = {.base = kRate}, .momentum = 0, .weight_decay = 0},
                               .strategy = job.strategy};
  testing::ShuffledWorld world(job, assembly.protocols, numbers, kSteps,
                               *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(world.run());
  const auto expected = reference(workers);
  for (std::size_t w = 0; w < workers; ++w) {
    const auto found = learners[w]->parameters();
    for (std::size_t i = 0; i < found.size(); ++i) {
      RC_ASSERT(std::abs(found[i] - expected[w][i]) < 1e-5F);
    }
  }
}

TEST(DPsgd, IsSimulatedAndBounded) {
  const Profile profile = testing::profile_of({10 * kSlice, 40 * kSlice}, 50, 100);
  Cluster cluster;
  cluster.topology = Topology(8, 1, 0);
  cluster.bandwidth_gbps = 1;
  const auto run = testing::run_simulated(profile, cluster, d_psgd());
  EXPECT_GE(run.result.iteration_time(),
            lower_bound(profile, cluster, d_psgd(), *run.assembly.chunks));
}

TEST(DPsgd, GoesWithWhatItsTraitsSay) {
  EXPECT_TRUE(validate(d_psgd()));
  Strategy over_servers = d_psgd();
  over_servers.exchange = Exchange::kBroadcast;
  EXPECT_THAT(validate(over_servers).error().message(), HasSubstr("take exchange gossip"));
  Strategy packed = d_psgd();
  packed.codec = Codec::kQuantise8;
  EXPECT_THAT(validate(packed).error().message(), HasSubstr("d-psgd sends parameters"));
}

}  // namespace
}  // namespace sluice
