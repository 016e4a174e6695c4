// SparseLoCo against a reference by the text of the paper, under any order of delivery. What a code
// says has tests of its own, against PyTorch (codecs/golden_test.cc).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "codecs/block_top_k.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "support/shuffled.h"

namespace sluice {
namespace {

using testing::kLayers;
using testing::ShuffledWorld;
using testing::toy_learners;
using testing::ToyLearner;

constexpr std::size_t kSparseWorkers = 3;
constexpr Iteration kSparseLength = 12;
constexpr float kSparseRate = 0.05F;

Job sparse_job() {
  Job job;
  job.layers = toy_learners(kLayers, 1).front()->layers();
  job.topology = Topology(kSparseWorkers, 1, 0);
  job.strategy = find_preset("sparseloco")->strategy;
  job.strategy.partition = Partition::kLayer;
  job.strategy.cadence.every = 3;
  job.strategy.cadence.rate = 0.8;
  job.strategy.top_k = {.block = 16, .kept = 3};
  return job;
}

// The parameters of all workers in the end; each layer is a chunk.
std::vector<std::vector<float>> by_the_paper(const Job& job) {
  const Strategy& strategy = job.strategy;
  const BlockTopK codec(strategy.top_k);
  ToyLearner fresh(kLayers, 0);
  std::vector<float> global(fresh.parameters().begin(), fresh.parameters().end());
  std::vector<std::vector<float>> own(kSparseWorkers, global);
  std::vector<std::vector<float>> kept(kSparseWorkers, std::vector<float>(global.size()));
  for (Iteration t = 1; t <= kSparseLength; ++t) {
    for (std::size_t w = 0; w < kSparseWorkers; ++w) {
      for (std::size_t i = 0; i < global.size(); ++i) {
        own[w][i] -= kSparseRate * ToyLearner::gradient(own[w][i], i, w, t - 1);
      }
    }
    if (t % strategy.cadence.every != 0) {
      continue;
    }
    std::vector<float> sum(global.size());
    for (std::size_t w = 0; w < kSparseWorkers; ++w) {
      for (std::size_t i = 0; i < global.size(); ++i) {
        kept[w][i] =
            static_cast<float>(strategy.feedback_decay) * kept[w][i] + (global[i] - own[w][i]);
      }
      for (const Layer& layer : job.layers) {
        const auto begin = static_cast<std::size_t>(layer.range.begin);
        const auto size = static_cast<std::size_t>(layer.range.size());
        codec.add(codec.take(std::span(kept[w]).subspan(begin, size)),
                  std::span(sum).subspan(begin, size));
      }
    }
    for (std::size_t i = 0; i < global.size(); ++i) {
      global[i] -= static_cast<float>(strategy.cadence.rate) * sum[i] / kSparseWorkers;
    }
    own.assign(kSparseWorkers, global);
  }
  return own;
}

TEST(SparseOuterSteps, AreThoseOfThePaper) {
  const Job job = sparse_job();
  const auto expected = by_the_paper(job);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Assembly assembly = assemble(job);
    const auto learners = toy_learners(kLayers, kSparseWorkers);
    const VirtualNumbers numbers{
        .learners = learners,
        .chunks = assembly.chunks.get(),
        .rule = {.rate = {.base = kSparseRate}, .momentum = 0, .weight_decay = 0},
        .strategy = job.strategy};
    ShuffledWorld world(assembly.job, assembly.protocols, numbers, kSparseLength, seed);
    ASSERT_TRUE(world.run());
    for (std::size_t w = 0; w < kSparseWorkers; ++w) {
      for (std::size_t i = 0; i < expected[w].size(); ++i) {
        ASSERT_NEAR(learners[w]->parameters()[i], expected[w][i], 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
