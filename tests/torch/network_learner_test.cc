#include "torch/network_learner.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "data/sharding.h"
#include "data/synthetic.h"
#include "torch/models/table.h"
#include "torch/module_network.h"
#include "torch/recorded_hooks.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// All difficult cases: modules registered in another order than used, one never used, one used and
// registered twice, bare parameters read as a list, and one that is not trained.
class Crooked final : public torch::nn::Module {
 public:
  Crooked()
      : exit_(register_module("exit", torch::nn::Linear(5, 3))),
        spare_(register_module("spare", torch::nn::Linear(2, 2))),
        entry_(register_module("entry", torch::nn::Linear(6, 5))),
        shared_(register_module("shared", torch::nn::Linear(5, 5))),
        again_(register_module("again", shared_)),
        scale_(register_parameter("scale", at::full({5}, 1.5F))),
        shift_(register_parameter("shift", at::full({5}, 0.1F))),
        frozen_(register_parameter("frozen", at::full({5}, 0.2F), false)) {}

  at::Tensor forward(const at::Tensor& features) {
    at::Tensor x = entry_(features).tanh();
    x = again_(shared_(x).tanh()).tanh();
    const at::Tensor affine = at::stack({scale_, shift_});
    return exit_(x * affine[0] + affine[1] + frozen_);
  }

 private:
  torch::nn::Linear exit_;
  torch::nn::Linear spare_;
  torch::nn::Linear entry_;
  torch::nn::Linear shared_;
  torch::nn::Linear again_;
  at::Tensor scale_;
  at::Tensor shift_;
  at::Tensor frozen_;
};

std::unique_ptr<Network> make_crooked() { return network_of(std::make_shared<Crooked>()); }

TorchTask task_with(std::vector<std::int64_t> shape, std::int64_t classes) {
  SyntheticSpec spec;
  spec.sample_shape = std::move(shape);
  spec.classes = classes;
  spec.train_samples = 64;
  spec.test_samples = 16;
  const DataSplit split = make_synthetic(spec);
  TorchTask task;
  task.train = std::make_shared<DataSet>(split.train);
  task.test = std::make_shared<DataSet>(split.test);
  task.batch = 8;
  task.workers = 2;
  return task;
}

LearnerFactory crooked_learners() { return make_network_learners(make_crooked, task_with({6}, 3)); }

LearnerFactory learners_of(const std::string& model, const TorchTask& task) {
  const std::vector<ModelEntry> table = model_table();
  const auto entry = std::ranges::find(table, model, &ModelEntry::name);
  return make_network_learners(
      [make = entry->make, form = task.train->form()] { return make(form); }, task);
}

LearnerFactory lenet_learners() { return learners_of("lenet", task_with({1, 28, 28}, 10)); }

// Branches, auxiliary heads, batch normalisation and dropout.
LearnerFactory googlenet_learners() {
  TorchTask task = task_with({3, 32, 32}, 4);
  task.batch = 2;
  return learners_of("googlenet", task);
}

LearnerFactory sockeye_learners() {
  const TextSplit split = make_synthetic_text({.longest = 6,
                                               .source_words = 30,
                                               .target_words = 20,
                                               .train_samples = 64,
                                               .test_samples = 16});
  TorchTask task;
  task.train = std::make_shared<TextSet>(split.train);
  task.test = std::make_shared<TextSet>(split.test);
  task.batch = 3;
  task.workers = 2;
  return learners_of("sockeye", task);
}

std::vector<LearnerFactory> all_kinds() {
  return {crooked_learners(), lenet_learners(), googlenet_learners(), sockeye_learners()};
}

Floats copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

std::span<float> part(std::span<float> values, const Layer& layer) {
  return values.subspan(static_cast<std::size_t>(layer.range.begin),
                        static_cast<std::size_t>(layer.range.size()));
}

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

TEST(NetworkLearnerTest, LearnersInTwoThreadsDoNotDisturbEachOther) {
  const LearnerFactory make = lenet_learners();
  constexpr Iteration kSteps = 5;
  const auto run = [&](std::size_t rank, Floats& gradients) {
    const auto learner = make(rank);
    for (Iteration iteration = 0; iteration < kSteps; ++iteration) {
      RecordedHooks hooks;
      learner->step(iteration, hooks);
      EXPECT_EQ(hooks.calls.size(), 2 * learner->layers().size() + 1);
    }
    gradients = copy_of(learner->gradients());
  };
  std::vector<Floats> alone(2);
  std::vector<Floats> together(2);
  run(0, alone[0]);
  run(1, alone[1]);
  std::thread first([&] { run(0, together[0]); });
  std::thread second([&] { run(1, together[1]); });
  first.join();
  second.join();
  EXPECT_EQ(together, alone);
  EXPECT_NE(alone[0], alone[1]);
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

TEST(NetworkLearnerTest, FrozenParametersAreEqualOnAllWorkers) {
  const LearnerFactory make = learners_of("cifar100-convex", task_with({3, 32, 32}, 10));
  const auto first = make(0);
  const auto second = make(1);
  EXPECT_EQ(first->parameters().size(), 650U);
  EXPECT_EQ(first->evaluate()->loss, second->evaluate()->loss);
}

// Every worker has its own running statistics. They affect only its evaluations.
TEST(NetworkLearnerTest, StepsGatherStatisticsForEvaluations) {
  const auto learner = googlenet_learners()(0);
  const double before = learner->evaluate()->loss;
  RecordedHooks ignored;
  const auto loss = learner->step(0, ignored);
  EXPECT_NE(learner->evaluate()->loss, before);
  EXPECT_EQ(learner->step(0, ignored), loss);
}

// Dropout is a function of iteration and worker: no two steps drop the same inputs.
TEST(NetworkLearnerTest, WorkersDropOutDifferentUnits) {
  TorchTask task = task_with({3, 63, 63}, 3);
  task.batch = 1;
  const auto same = std::make_shared<DataSet>(*std::static_pointer_cast<const DataSet>(task.train));
  for (std::int64_t i = 1; i < same->size(); ++i) {
    std::ranges::copy(same->sample(0), same->features.begin() + i * same->sample_size());
    same->labels[static_cast<std::size_t>(i)] = same->labels[0];
  }
  task.train = same;
  const LearnerFactory make = learners_of("alexnet", task);
  const auto learner = make(0);
  RecordedHooks ignored;
  const auto loss = learner->step(0, ignored);
  EXPECT_NE(learner->step(1, ignored), loss);
  EXPECT_NE(make(1)->step(0, ignored), loss);
  EXPECT_EQ(learner->step(0, ignored), loss);
}

TEST(NetworkLearnerTest, EvaluatesWithTheParametersAsTheyAre) {
  const auto learner = crooked_learners()(0);
  std::ranges::fill(learner->parameters(), 0.0F);
  // With all parameters zero, all three classes get the same score.
  EXPECT_NEAR(learner->evaluate()->loss, std::log(3.0), 1e-6);
  const Layer& exit = learner->layers()[3];
  part(learner->parameters(), exit).back() = 100;  // the bias of class 2
  std::int64_t twos = 0;
  const TorchTask task = task_with({6}, 3);
  for (std::int64_t i = 0; i < task.test->size(); ++i) {
    Batch one;
    task.test->load(std::array{i}, 0, one);
    twos += one.labels.front() == 2 ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(learner->evaluate()->accuracy,
                   static_cast<double>(twos) / static_cast<double>(task.test->size()));
}

}  // namespace
}  // namespace sluice
