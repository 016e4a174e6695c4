#include "torch/network_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "data/sharding.h"
#include "torch/recorded_hooks.h"
#include "torch/some_learners.h"

namespace sluice {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::string> names_of(const Learner& learner) {
  std::vector<std::string> names;
  for (const Layer& layer : learner.layers()) {
    names.push_back(layer.name);
  }
  return names;
}

std::size_t count(const std::vector<std::string>& calls, const std::string& call) {
  return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
}

// Keeps all parameters at NaN. Another thread writes a layer's values when the step waits for the
// layer.
class Reveal final : public StepHooks {
 public:
  explicit Reveal(Learner& learner) : learner_(learner), hidden_(copy_of(learner.parameters())) {
    std::ranges::fill(learner.parameters(), kNan);
    revealer_ = std::thread([this] { reveal_all(); });
  }
  ~Reveal() override { revealer_.join(); }

  bool before_layer(LayerId layer) override {
    std::unique_lock lock(mutex_);
    wanted_ = layer.index();
    changed_.notify_all();
    changed_.wait(lock, [&] { return wanted_ == kNothing; });
    return false;
  }
  void forward_done() override {}
  void gradient_ready(LayerId /*layer*/) override {}

 private:
  static constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

  void reveal_all() {
    for (std::size_t i = 0; i < learner_.layers().size(); ++i) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return wanted_ != kNothing; });
      const Layer& layer = learner_.layers()[wanted_];
      std::ranges::copy(part(hidden_, layer), part(learner_.parameters(), layer).begin());
      wanted_ = kNothing;
      changed_.notify_all();
    }
  }

  Learner& learner_;
  Floats hidden_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = kNothing;
  std::thread revealer_;
};

TEST(NetworkLearnerTest, NoParameterIsReadBeforeItsLayerIsIn) {
  for (const LearnerFactory& make : all_kinds()) {
    const auto plain = make(0);
    RecordedHooks ignored;
    const auto loss = plain->step(2, ignored);
    const auto gated = make(0);
    Reveal reveal(*gated);
    EXPECT_EQ(gated->step(2, reveal), loss);
    EXPECT_TRUE(std::ranges::equal(gated->gradients(), plain->gradients()));
  }
}

TEST(NetworkLearnerTest, LayersStandInTheOrderOfFirstUse) {
  const auto learner = crooked_learners()(0);
  EXPECT_EQ(names_of(*learner),
            (std::vector<std::string>{"entry", "shared", "model", "exit", "spare"}));
  EXPECT_EQ(learner->parameters().size(), 35U + 30 + 10 + 18 + 6);
  EXPECT_EQ(names_of(*lenet_learners()(0)),
            (std::vector<std::string>{"conv1", "conv2", "fc1", "fc2"}));
}

TEST(NetworkLearnerTest, EveryLayerIsAnnouncedOnceToEachHook) {
  const auto learner = crooked_learners()(0);
  for (Iteration iteration = 0; iteration < 3; ++iteration) {
    RecordedHooks hooks;
    learner->step(iteration, hooks);
    ASSERT_EQ(hooks.calls.size(), 2 * learner->layers().size() + 1);
    EXPECT_EQ(hooks.calls[learner->layers().size()], "forward done");
    for (std::size_t layer = 0; layer < learner->layers().size(); ++layer) {
      EXPECT_EQ(hooks.calls[layer], "read " + std::to_string(layer));
      EXPECT_EQ(count(hooks.calls, "ready " + std::to_string(layer)), 1U);
    }
    EXPECT_EQ(hooks.calls.back(), "ready 4");  // never used, so reported at the end
  }
}

// Forward and backward pass of a bare module; gradients by the name of the module that owns them.
std::map<std::string, Floats> plain_gradients(Crooked& module, const TorchTask& task,
                                              const std::vector<std::int64_t>& batch) {
  std::vector<at::Tensor> features;
  std::vector<std::int64_t> labels;
  for (const std::int64_t index : batch) {
    Batch one;
    task.train->load(std::array{index}, 0, one);
    features.push_back(at::tensor(at::ArrayRef<float>(one.features)));
    labels.push_back(one.labels.front());
  }
  const at::Tensor scores = module.forward(at::stack(features));
  at::cross_entropy_loss(scores, at::tensor(at::ArrayRef<std::int64_t>(labels))).backward();
  std::map<std::string, Floats> gradients;
  for (const auto& item : module.named_parameters()) {
    const std::size_t dot = item.key().rfind('.');
    Floats& owner = gradients[dot == std::string::npos ? "model" : item.key().substr(0, dot)];
    const at::Tensor& gradient = item.value().grad();
    if (gradient.defined()) {
      owner.insert(owner.end(), gradient.data_ptr<float>(),
                   gradient.data_ptr<float>() + gradient.numel());
    }
  }
  return gradients;
}

TEST(NetworkLearnerTest, GradientsAreThoseOfPlainAutograd) {
  const TorchTask task = task_with({6}, 3);
  at::manual_seed(task.seed);
  Crooked module;
  const auto learner = make_network_learners(make_crooked, task)(1);
  RecordedHooks hooks;
  learner->step(0, hooks);
  learner->step(1, hooks);  // nothing of the first step may remain
  const auto expected = plain_gradients(
      module, task, Sharding{task.seed, 64, task.batch, task.workers}.batch_of(1, 1));
  for (const Layer& layer : learner->layers()) {
    const Floats actual = copy_of(part(learner->gradients(), layer));
    if (layer.name == "spare") {
      EXPECT_EQ(actual, Floats(6, 0.0F));
    } else {
      EXPECT_EQ(actual, expected.at(layer.name)) << layer.name;
    }
  }
}

// Uses all the freedom of the contract: reads a gradient at any time from gradient_ready until the
// layer is next reported, and writes new parameters as soon as a gradient is final.
class Busy final : public StepHooks {
 public:
  explicit Busy(Learner& learner) : learner_(learner), initial_(copy_of(learner.parameters())) {}

  bool before_layer(LayerId id) override {
    const Layer& layer = learner_.layers()[id.index()];
    std::ranges::copy(part(initial_, layer), part(learner_.parameters(), layer).begin());
    if (!final_.empty()) {
      EXPECT_EQ(copy_of(part(learner_.gradients(), layer)), final_.at(id)) << layer.name;
    }
    return true;
  }
  void forward_done() override { final_.clear(); }
  void gradient_ready(LayerId id) override {
    const Layer& layer = learner_.layers()[id.index()];
    final_[id] = copy_of(part(learner_.gradients(), layer));
    std::ranges::fill(part(learner_.parameters(), layer), kNan);
  }

 private:
  Learner& learner_;
  Floats initial_;
  std::map<LayerId, Floats> final_;
};

TEST(NetworkLearnerTest, KeepsItsPromisesToTheProtocol) {
  for (const LearnerFactory& make : all_kinds()) {
    const auto plain = make(0);
    const auto busy = make(0);
    Busy hooks(*busy);
    RecordedHooks ignored;
    for (Iteration iteration = 0; iteration < 3; ++iteration) {
      EXPECT_EQ(busy->step(iteration, hooks), plain->step(iteration, ignored));
      EXPECT_TRUE(std::ranges::equal(busy->gradients(), plain->gradients()));
    }
  }
}

class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped") {}
};

class StopAt final : public RecordedHooks {
 public:
  explicit StopAt(std::string call) : call_(std::move(call)) {}

  bool before_layer(LayerId layer) override {
    const bool at_once = RecordedHooks::before_layer(layer);
    stop_if_reached();
    return at_once;
  }
  void gradient_ready(LayerId layer) override {
    RecordedHooks::gradient_ready(layer);
    stop_if_reached();
  }

 private:
  void stop_if_reached() const {
    if (calls.back() == call_) {
      throw Stopped();
    }
  }

  std::string call_;
};

TEST(NetworkLearnerTest, HooksMayBreakAStepOff) {
  const auto learner = crooked_learners()(0);
  RecordedHooks ignored;
  const auto loss = learner->step(0, ignored);
  const Floats gradients = copy_of(learner->gradients());
  for (const std::string call : {"read 1", "read 4", "ready 3", "ready 4"}) {
    StopAt hooks(call);
    EXPECT_THROW(learner->step(1, hooks), Stopped) << call;
    EXPECT_EQ(hooks.calls.back(), call);
    EXPECT_EQ(learner->step(0, ignored), loss);
    EXPECT_EQ(copy_of(learner->gradients()), gradients);
  }
}

}  // namespace
}  // namespace sluice
