#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "torch/recorded_hooks.h"
#include "torch/some_learners.h"

namespace sluice {
namespace {

struct Step {
  double loss = 0;
  Floats gradients;
  std::vector<std::string> calls;
};

Step second_step(const LearnerFactory& make) {
  const auto learner = make(1);
  RecordedHooks first;
  learner->step(0, first);  // nothing of it may remain
  RecordedHooks hooks;
  const double loss = *learner->step(1, hooks);
  return {loss, copy_of(learner->gradients()), hooks.calls};
}

void expect_near(const Step& actual, const Step& expected) {
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    error = std::hypot(error, actual.gradients[i] - expected.gradients[i]);
    norm = std::hypot(norm, expected.gradients[i]);
  }
  EXPECT_GT(norm, 0);
  EXPECT_LT(error, 1e-5 * norm);
}

TEST(AccumulationTest, MicroBatchesMakeTheStepOfTheirBatch) {
  const auto steps = [](auto make, TorchTask task) {
    task.batch = 24;
    const Step whole = second_step(make(task));
    task.batch = 6;
    task.accumulate = 4;
    const Step parts = second_step(make(task));
    expect_near(parts, whole);
    EXPECT_EQ(parts.calls, whole.calls) << "one exchange";
  };
  steps([](const TorchTask& task) { return make_network_learners(make_crooked, task); },
        task_with({6}, 3));
  steps([](const TorchTask& task) { return learners_of("lenet", task); },
        task_with({1, 28, 28}, 10));
  steps([](const TorchTask& task) { return learners_of("sockeye", task); }, text_task());
}

// Sends a layer while the last backward pass still runs: no later pass may change its gradient.
TEST(AccumulationTest, AReportedGradientIsFinal) {
  class Snapshot final : public StepHooks {
   public:
    explicit Snapshot(Learner& learner) : learner_(learner) {}
    bool before_layer(LayerId /*layer*/) override { return true; }
    void forward_done() override {}
    void gradient_ready(LayerId id) override {
      seen_.emplace_back(id, copy_of(part(learner_.gradients(), learner_.layers()[id.index()])));
    }
    void compare() const {
      ASSERT_EQ(seen_.size(), learner_.layers().size());
      for (const auto& [id, gradient] : seen_) {
        EXPECT_EQ(copy_of(part(learner_.gradients(), learner_.layers()[id.index()])), gradient);
      }
    }

   private:
    Learner& learner_;
    std::vector<std::pair<LayerId, Floats>> seen_;
  };
  TorchTask task = task_with({6}, 3);
  task.batch = 4;
  task.accumulate = 3;
  const auto learner = make_network_learners(make_crooked, task)(0);
  Snapshot hooks(*learner);
  learner->step(0, hooks);
  hooks.compare();
}

}  // namespace
}  // namespace sluice
