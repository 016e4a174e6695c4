#include "torch/torch_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "data/idx.h"
#include "data/synthetic.h"
#include "support/skip.h"
#include "torch/recorded_hooks.h"

namespace sluice {
namespace {

DataSet first_samples(const DataSet& data, std::int64_t samples) {
  DataSet part = data;
  part.labels.resize(static_cast<std::size_t>(samples));
  part.features.resize(static_cast<std::size_t>(samples * data.sample_size()));
  return part;
}

TorchTask task_of(const std::string& model, const DataSplit& split) {
  TorchTask task;
  task.model = model;
  task.train = std::make_shared<DataSet>(split.train);
  task.test = std::make_shared<DataSet>(split.test);
  task.batch = 32;
  return task;
}

TorchTask small_task(const std::string& model) {
  SyntheticSpec spec;
  spec.sample_shape = {1, 28, 28};
  spec.train_samples = 320;
  spec.test_samples = 1010;
  return task_of(model, make_synthetic(spec));
}

std::unique_ptr<Learner> make_learner(const TorchTask& task) {
  auto make = make_torch_learners(task);
  EXPECT_TRUE(make) << make.error().message();
  return (*make)(0);
}

// The mean over workers with unequal batches is the gradient of the joined batch.
TEST(TorchLearnerTest, SharesOfABatchCountBySamples) {
  TorchTask task = small_task("mlp");
  task.workers = 4;
  task.batch = 8;
  TorchTask alone = task;
  alone.workers = 1;
  alone.batch = 32;
  task.shares = {1, 2, 4, 1};
  const std::unique_ptr<Learner> whole = make_learner(alone);
  const auto make = make_torch_learners(task);
  ASSERT_TRUE(make);
  for (Iteration t = 0; t < 3; ++t) {
    RecordedHooks ignored;
    const double loss = *whole->step(t, ignored);
    std::vector<double> sum(whole->gradients().size());
    double losses = 0;
    for (std::size_t rank = 0; rank < task.workers; ++rank) {
      const std::unique_ptr<Learner> part = (*make)(rank);
      RecordedHooks hooks;
      losses += *part->step(t, hooks);
      std::transform(sum.begin(), sum.end(), part->gradients().begin(), sum.begin(),
                     [](double a, float b) { return a + static_cast<double>(b); });
    }
    EXPECT_NEAR(losses / 4, loss, 1e-5);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      ASSERT_NEAR(sum[i] / 4, whole->gradients()[i], 1e-5) << i;
    }
  }
}

// Plain SGD on one worker, without any protocol.
void train(Learner& learner, Iteration iterations) {
  constexpr float kRate = 0.05F;
  constexpr float kMomentum = 0.9F;
  const std::span<float> parameters = learner.parameters();
  const std::span<const float> gradients = learner.gradients();
  std::vector<float> velocity(parameters.size());
  for (Iteration t = 0; t < iterations; ++t) {
    RecordedHooks hooks;
    learner.step(t, hooks);
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      velocity[i] = kMomentum * velocity[i] + gradients[i];
      parameters[i] -= kRate * velocity[i];
    }
  }
}

// A clock on which all steps take equally long. Unlike the default, this sets one thread per
// operator, as in a run.
Result<EngineChoice> configure(const TorchTask& task) {
  double now = 0;
  return configure_engine(task, [&] { return now += 0.125; });
}

void expect_refused(const TorchTask& task, const std::string& part) {
  const auto make = make_torch_learners(task);
  ASSERT_FALSE(make);
  EXPECT_NE(make.error().message().find(part), std::string::npos) << make.error().message();
}

TEST(TorchLearnerTest, StartsFromTheSeed) {
  TorchTask task = small_task("lenet");
  task.workers = 2;
  const auto make = make_torch_learners(task);
  ASSERT_TRUE(make);
  const auto first = (*make)(0);
  const auto second = (*make)(1);
  EXPECT_TRUE(std::ranges::equal(first->parameters(), second->parameters()));
  EXPECT_TRUE(std::ranges::equal(first->parameters(), make_learner(task)->parameters()));
  task.seed = 2;
  EXPECT_FALSE(std::ranges::equal(first->parameters(), make_learner(task)->parameters()));
}

TEST(TorchLearnerTest, AStepIsAFunctionOfTheIteration) {
  const auto learner = make_learner(small_task("lenet"));
  RecordedHooks hooks;
  const auto loss = learner->step(3, hooks);
  const std::vector<float> gradients(learner->gradients().begin(), learner->gradients().end());
  EXPECT_NE(learner->step(4, hooks), loss);
  EXPECT_EQ(learner->step(3, hooks), loss);
  EXPECT_TRUE(std::ranges::equal(learner->gradients(), gradients));
}

TEST(TorchLearnerTest, WorkersLearnFromDifferentSamples) {
  TorchTask task = small_task("mlp");
  task.workers = 2;
  const auto make = make_torch_learners(task);
  ASSERT_TRUE(make);
  RecordedHooks hooks;
  EXPECT_NE((*make)(0)->step(0, hooks), (*make)(1)->step(0, hooks));
}

TEST(TorchLearnerTest, LearnsFashionMnist) {
  if (!std::filesystem::exists(kFashionMnistFolder)) {
    SKIP_FOR_LACK("there is no " + std::string(kFashionMnistFolder) +
                  "; apt-get install dataset-fashion-mnist");
  }
  auto split = read_idx_folder(kFashionMnistFolder);
  ASSERT_TRUE(split) << split.error().message();
  const TorchTask task =
      task_of("mlp", {first_samples(split->train, 2000), first_samples(split->test, 1000)});
  ASSERT_TRUE(configure(task));
  const auto learner = make_learner(task);
  const Evaluation before = learner->evaluate().value();
  train(*learner, 124);
  const Evaluation after = learner->evaluate().value();
  EXPECT_LT(before.accuracy, 0.3);
  EXPECT_GT(after.accuracy, 0.7);
  EXPECT_LT(after.loss, before.loss / 2);
}

TEST(TorchLearnerTest, LearnsSyntheticData) {
  for (const char* model : {"lenet", "mlp"}) {
    const TorchTask task = small_task(model);
    ASSERT_TRUE(configure(task));
    const auto learner = make_learner(task);
    const Evaluation before = learner->evaluate().value();
    train(*learner, 20);
    const Evaluation after = learner->evaluate().value();
    EXPECT_LT(after.loss, before.loss) << model;
    EXPECT_GT(*after.accuracy, *before.accuracy + 0.2) << model;
  }
}

TEST(TorchLearnerTest, RefusesWhatCannotBeTrained) {
  TorchTask task = small_task("lenet");
  task.model = "lennet";
  expect_refused(task, "choose one of lenet, mlp, ");
  task = small_task("lenet");
  task.workers = 11;
  expect_refused(task, "more than the 320 training samples");
  task.workers = 1;
  task.batch = 0;
  expect_refused(task, "at least 1");
  task = small_task("lenet");
  SyntheticSpec spec;
  spec.sample_shape = {3, 32, 32};
  spec.train_samples = spec.test_samples = 64;
  expect_refused(task_of("lenet", make_synthetic(spec)), "expected samples of shape 1x28x28");
  task.test = nullptr;
  expect_refused(task, "found none");
  // One sample has no variance where an image has shrunk to one pixel.
  task = task_of("resnet18", make_synthetic(spec));
  task.batch = 1;
  expect_refused(task, "does not take 1 sample of shape 3x32x32");
}

// What the steps of a learner leave behind, in the order of the parameters.
std::vector<float> gradients_of(const TorchTask& task) {
  const auto learner = make_learner(task);
  RecordedHooks hooks;
  learner->step(0, hooks);
  return {learner->gradients().begin(), learner->gradients().end()};
}

TEST(TorchLearnerTest, TheLayoutOfImagesChangesNoMoreThanRounding) {
  TorchTask task = small_task("lenet");
  ASSERT_TRUE(configure_engine(task, {}, Kernels::kNative));
  const std::vector<float> plain = gradients_of(with_kernels(task, Kernels::kNative));
  const std::vector<float> turned = gradients_of(with_kernels(task, Kernels::kNativeChannelsLast));
  ASSERT_EQ(turned.size(), plain.size());
  const float largest = *std::ranges::max_element(plain);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    ASSERT_NEAR(turned[i], plain[i], 1e-4F * largest) << i;
  }
}

TEST(TorchEngineTest, MeasuresWhatThereIsToChoose) {
  const auto choice = configure(small_task("mlp"));
  ASSERT_TRUE(choice) << choice.error().message();
  for (const EngineChoice::Trial& trial : choice->trials) {
    EXPECT_DOUBLE_EQ(trial.seconds, 0.125);
  }
  EXPECT_EQ(choice->kernels, Kernels::kNative);  // equal times: no reason to change
  EXPECT_EQ(choice->trials.back().kernels, Kernels::kNativeChannelsLast);
  const EngineInfo engine = torch_engine();
  EXPECT_TRUE(engine.available);
  EXPECT_FALSE(engine.onednn);
  EXPECT_EQ(engine.threads, 1);
  EXPECT_FALSE(engine.version.empty());
  EXPECT_FALSE(engine.blas.empty());
}

TEST(TorchDeviceTest, IsTheHostIfThereIsNoOther) {
  EXPECT_EQ(*torch_device("cpu"), "cpu");
  EXPECT_EQ(*torch_device("auto"), torch_engine().cuda ? "cuda" : "cpu");
}

TEST(TorchDeviceTest, WhatThereIsNotIsRefused) {
  for (const char* device : {"gpu", "", "cuda:", "cuda:x", "cuda:0x", "cuda:-1"}) {
    const auto refused = torch_device(device);
    ASSERT_FALSE(refused) << device;
    EXPECT_NE(refused.error().message().find("expected auto, cpu, cuda or cuda:NUMBER"),
              std::string::npos);
  }
  EXPECT_FALSE(torch_device("cuda:99"));
  EXPECT_EQ(static_cast<bool>(torch_device("cuda")), torch_engine().cuda);
}

TEST(TorchEngineTest, TakesWhatIsFaster) {
  const TorchTask task = small_task("mlp");
  ASSERT_TRUE(configure_engine(task, {}, Kernels::kOneDnn));
  if (!torch_engine().onednn) {
    SKIP_AS_INAPPLICABLE("this LibTorch has no oneDNN");
  }
  // A clock on which oneDNN is faster, first by much, then by little.
  for (const auto& [seconds, taken] :
       {std::pair(0.5, Kernels::kOneDnn), std::pair(0.99, Kernels::kNative)}) {
    double now = 0;
    const auto choice =
        configure_engine(task, [&] { return now += torch_engine().onednn ? seconds : 1.0; });
    ASSERT_TRUE(choice) << choice.error().message();
    EXPECT_EQ(choice->kernels, taken);
    EXPECT_EQ(torch_engine().onednn, taken == Kernels::kOneDnn);
  }
  ASSERT_TRUE(configure_engine(task, {}, Kernels::kNative));
  EXPECT_FALSE(torch_engine().onednn);
}

}  // namespace
}  // namespace sluice
