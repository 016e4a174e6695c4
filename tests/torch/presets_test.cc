// Every preset trains a real network on threads.
#include "nodes/presets.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "support/talkative.h"
#include "support/threaded.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

class PresetTrains : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PresetTrains, LowersTheLossOfAnMlp) {
  constexpr std::size_t kWorkers = 3;
  constexpr Iteration kIterations = 25;
  SyntheticSpec spec;
  spec.sample_shape = {1, 28, 28};
  spec.train_samples = 600;
  spec.test_samples = 200;
  spec.noise = 1;
  DataSplit split = make_synthetic(spec);
  TorchTask task;
  task.model = "mlp";
  task.train = std::make_shared<const DataSet>(std::move(split.train));
  task.test = std::make_shared<const DataSet>(std::move(split.test));
  task.batch = 10;
  task.workers = kWorkers;
  const auto factory = make_torch_learners(task);
  ASSERT_TRUE(factory) << factory.error().message();
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    learners.push_back((*factory)(w));
  }
  const double before = learners.front()->evaluate()->loss;
  const Preset& preset = *find_preset(GetParam());
  const UpdateRule rule{
      .rate = {.base = static_cast<float>(preset.lr)}, .momentum = 0.9F, .weight_decay = 0};
  Strategy strategy = testing::talkative(preset.strategy);
  strategy.dgc.epoch_iterations = kIterations;
  testing::run_threaded(learners, Topology(kWorkers, 1, 0), strategy, rule, kIterations);
  for (const auto& learner : learners) {
    EXPECT_LT(learner->evaluate()->loss, before / 2);
  }
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> all;
  for (const Preset& preset : presets()) {
    all.push_back(preset.name);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, PresetTrains, ::testing::ValuesIn(preset_names()),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '+'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice
