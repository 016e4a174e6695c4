#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>

#include "data/array_set.h"
#include "support/temporary_folder.h"
#include "torch/recorded_hooks.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Targets are the sums of the features.
std::shared_ptr<const ArraySet> sums(std::int64_t count) {
  auto set = std::make_shared<ArraySet>();
  set->count = count;
  set->sample_form = {.shape = {2}, .classes = 0, .words = 0, .target_shape = {1}};
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(i % 7) / 7;
    const float y = static_cast<float>(i % 5) / 5;
    set->features.insert(set->features.end(), {x, y});
    set->targets.push_back(x + y);
  }
  return set;
}

class ScriptLossTest : public ::testing::Test {
 protected:
  // A linear map whose forward() is this.
  TorchTask task_with(const std::string& forward, Loss loss) {
    torch::jit::Module module("net");
    module.register_parameter("weight", at::randn({1, 2}).requires_grad_(), false);
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(forward);
    const std::string path = folder_.path() / "net.pt";
    module.save(path);
    TorchTask task;
    task.model = path;
    task.train = sums(64);
    task.test = sums(16);
    task.batch = 8;
    task.loss = loss;
    return task;
  }
  static std::string failure_of(const TorchTask& task) {
    const auto made = make_torch_learners(task);
    return made ? "none" : made.error().message();
  }
  // After some steps of plain descent.
  static double final_loss(const TorchTask& task) {
    const auto learner = (*make_torch_learners(task))(0);
    RecordedHooks hooks;
    for (Iteration t = 0; t < 300; ++t) {
      learner->step(t, hooks);
      for (std::size_t i = 0; i < learner->parameters().size(); ++i) {
        learner->parameters()[i] -= 0.2F * learner->gradients()[i];
      }
    }
    const auto evaluation = learner->evaluate();
    EXPECT_FALSE(evaluation->accuracy);
    learner->estimate_statistics();
    return evaluation->loss;
  }

  TemporaryFolder folder_;
};

constexpr const char* kOutputs = "def forward(self, x):\n    return torch.linear(x, self.weight)\n";
constexpr const char* kOwnLoss =
    "def forward(self, x, y):\n    return torch.mean(torch.abs(torch.linear(x, self.weight) - "
    "y))\n";

TEST_F(ScriptLossTest, LearnsRealNumbers) {
  EXPECT_LT(final_loss(task_with(kOutputs, Loss::kMse)), 1e-3);
  TorchTask task = task_with(kOutputs, Loss::kMse);
  task.batch = 2;
  task.accumulate = 4;
  EXPECT_LT(final_loss(task), 1e-3);
}

TEST_F(ScriptLossTest, LearnsByTheLossOfTheModule) {
  EXPECT_LT(final_loss(task_with(kOwnLoss, Loss::kModule)), 0.1);
}

TEST_F(ScriptLossTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(failure_of(task_with(kOutputs, Loss::kCrossEntropy)),
              HasSubstr("the targets of the data are real numbers, expected class labels"));
  EXPECT_THAT(
      failure_of(task_with(
          "def forward(self, x):\n    return torch.flatten(torch.linear(x, self.weight))\n",
          Loss::kMse)),
      HasSubstr("its outputs are of shape (2), and the targets of shape (2, 1); loss mse needs the "
                "same"));
  EXPECT_THAT(failure_of(task_with(
                  "def forward(self, x, y):\n    return torch.linear(x, self.weight) - y\n",
                  Loss::kModule)),
              HasSubstr("returns a tensor of shape (2, 1); loss module expects a single number"));
  EXPECT_THAT(failure_of(task_with(kOutputs, Loss::kModule)), HasSubstr("forward"));
}

}  // namespace
}  // namespace sluice
