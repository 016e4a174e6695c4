#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "torch/recorded_hooks.h"
#include "torch/some_learners.h"

namespace sluice {
namespace {

// The gradient of the first step, by a learner of its own.
Floats first_gradient(const LearnerFactory& make) {
  const auto learner = make(0);
  RecordedHooks hooks;
  learner->step(0, hooks);
  return copy_of(learner->gradients());
}

double norm_of(const Floats& values) {
  double norm = 0;
  for (const float value : values) {
    norm = std::hypot(norm, value);
  }
  return norm;
}

// LibTorch's own kernels compute in bf16 everywhere, those of oneDNN on some processors.
class PrecisionTest : public ::testing::Test {
 protected:
  void SetUp() override { at::globalContext().setUserEnabledMkldnn(false); }
  void TearDown() override { at::globalContext().setUserEnabledMkldnn(before_); }

 private:
  bool before_ = at::globalContext().userEnabledMkldnn();
};

TEST_F(PrecisionTest, Bf16RoundsGradientsAndKeepsTheirDirection) {
  TorchTask task = task_with({1, 28, 28}, 10);
  const Floats exact = first_gradient(learners_of("lenet", task));
  task.precision = Precision::kBf16;
  const Floats rounded = first_gradient(learners_of("lenet", task));
  ASSERT_EQ(rounded.size(), exact.size());
  Floats error(exact.size());
  std::ranges::transform(rounded, exact, error.begin(), std::minus());
  EXPECT_GT(norm_of(error), 1e-4 * norm_of(exact)) << "nothing was computed in bf16";
  EXPECT_LT(norm_of(error), 0.3 * norm_of(exact));
}

TEST_F(PrecisionTest, Bf16Learns) {
  TorchTask task = task_with({6}, 3);
  task.precision = Precision::kBf16;
  task.workers = 1;
  const auto learner = make_network_learners(make_crooked, task)(0);
  const Evaluation before = *learner->evaluate();
  RecordedHooks hooks;
  for (Iteration t = 0; t < 100; ++t) {
    learner->step(t, hooks);
    const std::span<float> parameters = learner->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] -= 0.2F * learner->gradients()[i];
    }
  }
  EXPECT_LT(learner->evaluate()->loss, 0.7 * before.loss);
}

// Converted parameters are kept during a pass. Those of an earlier step must not be used.
TEST_F(PrecisionTest, Bf16SeesNewParameters) {
  TorchTask task = task_with({6}, 3);
  task.precision = Precision::kBf16;
  const auto make = make_network_learners(make_crooked, task);
  const auto learner = make(0);
  RecordedHooks hooks;
  learner->step(0, hooks);
  std::ranges::fill(learner->parameters(), 0.0F);
  EXPECT_NEAR(*learner->step(1, hooks), std::log(3), 1e-2) << "all scores are equal";
}

}  // namespace
}  // namespace sluice
