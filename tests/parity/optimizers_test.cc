// Every optimiser on threads, in virtual time and in a single process.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "nodes/presets.h"
#include "nodes/validate_update.h"
#include "optimizers/optimizer_state.h"
#include "support/simulated.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::ToyLearner;

const std::vector<std::int64_t> kOptimizedLayers{37, 0, 500, 12, 260, 3};
constexpr Iteration kSteps = 30;

UpdateRule rule_with(Optimizer optimizer) {
  UpdateRule rule{.rate = {.base = 0.01F}, .momentum = 0.5F, .weight_decay = 1e-3F};
  rule.optimizer = optimizer;
  rule.options = traits_of(optimizer).options;
  return rule;
}

Strategy strategy_with(std::string_view preset, const UpdateRule& rule,
                       std::optional<Update> update = std::nullopt) {
  Strategy strategy = find_preset(preset)->strategy;
  strategy.update = update;
  strategy.slice_params = 64;
  strategy.kvstore_split_params = 200;
  strategy.credit = 512;
  strategy.segment_params = 100;
  strategy.collective = Collective::kRing;
  strategy.sums_first = sums_first(rule);
  if (rule.traits().whole_layers && strategy.partition != Partition::kWhole) {
    strategy.partition = Partition::kLayer;
  }
  EXPECT_TRUE(validate(rule, strategy)) << preset;
  return strategy;
}

std::vector<float> values_of(Learner& learner) {
  const auto values = learner.parameters();
  return {values.begin(), values.end()};
}

std::vector<float> trained_on_threads(const Strategy& strategy, const Topology& topology,
                                      const UpdateRule& rule) {
  const auto learners = testing::toy_learners(kOptimizedLayers, topology.workers());
  testing::run_threaded(learners, topology, strategy, rule, kSteps);
  for (const auto& learner : learners) {
    EXPECT_EQ(values_of(*learner), values_of(*learners.front()));
  }
  return values_of(*learners.front());
}

std::vector<float> trained_in_virtual_time(const Strategy& strategy, const Topology& topology,
                                           const UpdateRule& rule) {
  const auto learners = testing::toy_learners(kOptimizedLayers, topology.workers());
  Cluster cluster;
  cluster.topology = topology;
  cluster.bandwidth_gbps = 1;
  const Profile profile = testing::profile_of(kOptimizedLayers, 1, 2);
  VirtualNumbers numbers{.learners = learners, .chunks = nullptr, .rule = rule, .strategy = {}};
  testing::run_simulated(profile, cluster, strategy, kSteps, nullptr, &numbers);
  return values_of(*learners.front());
}

// The gradients of all ranks, in their order; an update for each layer.
std::vector<float> trained_in_one_process(std::size_t workers, const UpdateRule& rule) {
  ToyLearner learner(kOptimizedLayers, 0);
  const std::span<float> w = learner.parameters();
  const OptimizerState state(rule, w.size());
  for (Iteration t = 0; t < kSteps; ++t) {
    std::vector<std::vector<float>> gradients(workers, std::vector<float>(w.size()));
    double squares = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      double mean = 0;
      for (std::size_t r = 0; r < workers; ++r) {
        gradients[r][i] = static_cast<float>(ToyLearner::gradient(w[i], i, r, t));
        mean += static_cast<double>(gradients[r][i]) / static_cast<double>(workers);
      }
      squares += mean * mean;
    }
    const float factor = rule.clip_norm > 0 ? rule.clip_factor(std::sqrt(squares)) : 1;
    for (const Layer& layer : learner.layers()) {
      const auto begin = static_cast<std::size_t>(layer.range.begin);
      const auto size = static_cast<std::size_t>(layer.range.size());
      std::vector<std::span<const float>> sources;
      for (const auto& gradient : gradients) {
        sources.push_back(std::span(gradient).subspan(begin, size));
      }
      rule.apply(w.subspan(begin, size), state.part(layer.range), sources, BatchShare::all(workers),
                 t + 1, factor);
    }
  }
  return values_of(learner);
}

void expect_near(const std::vector<float>& values, const std::vector<float>& others) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], others[i], 1e-4) << i;
  }
}

class EveryOptimizer : public ::testing::TestWithParam<Optimizer> {};

// A server adds in the order of ranks, so its bits are those of one process.
TEST_P(EveryOptimizer, OnServersIsThatOfOneProcess) {
  const UpdateRule rule = rule_with(GetParam());
  const std::vector<float> expected = trained_in_one_process(3, rule);
  for (const char* preset : {"p3", "kvstore", "slicing"}) {
    EXPECT_EQ(trained_on_threads(strategy_with(preset, rule), Topology(3, 1, 0), rule), expected)
        << preset;
  }
}

TEST_P(EveryOptimizer, WithoutServersIsNearlyThatOfOneProcess) {
  const UpdateRule rule = rule_with(GetParam());
  const std::vector<float> expected = trained_in_one_process(3, rule);
  for (const char* preset : {"wfbp", "ar-sgd"}) {
    expect_near(trained_on_threads(strategy_with(preset, rule), Topology(3, 1, 0), rule), expected);
  }
}

TEST_P(EveryOptimizer, IsTheSameInVirtualTime) {
  const UpdateRule rule = rule_with(GetParam());
  for (const char* preset : {"p3", "wfbp", "p3-allreduce"}) {
    const Strategy strategy = strategy_with(preset, rule);
    const Topology topology(2, 2, 0);
    EXPECT_EQ(trained_on_threads(strategy, topology, rule),
              trained_in_virtual_time(strategy, topology, rule))
        << preset;
  }
}

// Clips most gradients of the toy.
TEST_P(EveryOptimizer, ClipsTheMeanGradient) {
  UpdateRule by_value = rule_with(GetParam());
  by_value.clip_value = 0.1F;
  UpdateRule by_norm = rule_with(GetParam());
  by_norm.clip_norm = 0.5F;
  const std::vector<float> plain = trained_in_one_process(3, rule_with(GetParam()));
  for (const UpdateRule& rule : {by_value, by_norm}) {
    const std::vector<float> expected = trained_in_one_process(3, rule);
    EXPECT_NE(expected, plain);
    for (const char* preset : {"wfbp", "p3-allreduce", "ar-sgd", "p3", "kvstore", "tensorflow"}) {
      const Strategy strategy = strategy_with(preset, rule, Update::kWorker);
      const auto trained = trained_on_threads(strategy, Topology(3, 1, 0), rule);
      expect_near(trained, expected);
      EXPECT_EQ(trained, trained_in_virtual_time(strategy, Topology(3, 1, 0), rule)) << preset;
    }
  }
}

TEST(OptimizerParity, TheWorkersOfAMachineClipTogether) {
  UpdateRule rule = rule_with(Optimizer::kSgd);
  rule.clip_norm = 0.5F;
  Strategy strategy = strategy_with("wfbp", rule);
  strategy.local_aggregation = true;
  expect_near(trained_on_threads(strategy, Topology(2, 2, 0), rule),
              trained_in_one_process(4, rule));
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         ::testing::Values(Optimizer::kSgd, Optimizer::kAdam, Optimizer::kAdamW,
                                           Optimizer::kAdagrad, Optimizer::kRmsprop,
                                           Optimizer::kLamb),
                         [](const auto& info) { return std::string(traits_of(info.param).name); });

}  // namespace
}  // namespace sluice
