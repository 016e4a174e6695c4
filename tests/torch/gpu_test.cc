// Training on a GPU. Does not link RapidCheck, which a machine with a GPU may lack.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "data/synthetic.h"
#include "drivers/realtime/steady_sleeper.h"
#include "drivers/threads/thread_training.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "support/skip.h"
#include "torch/recorded_hooks.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

#define NEEDS_GPU()                                                                         \
  if (!torch_engine().cuda) {                                                               \
    SKIP_AS_INAPPLICABLE(                                                                   \
        "this LibTorch finds no GPU; build against one with CUDA on a machine with a GPU"); \
  }

TorchTask task_on(const std::string& device) {
  const DataSplit split = make_synthetic({.sample_shape = {1, 28, 28},
                                          .classes = 10,
                                          .train_samples = 256,
                                          .test_samples = 64,
                                          .seed = 3});
  TorchTask task;
  task.model = "lenet";
  task.train = std::make_shared<DataSet>(split.train);
  task.test = std::make_shared<DataSet>(split.test);
  task.batch = 16;
  task.workers = 2;
  task.device = device;
  task.sleeper = std::make_shared<SteadySleeper>();
  return task;
}

std::unique_ptr<Learner> learner_on(const std::string& device) {
  return (*make_torch_learners(task_on(device)))(0);
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

class SpanHooks final : public RecordedHooks {
 public:
  void device_done(Iteration iteration, std::span<const DeviceSpan> reported) override {
    iterations.push_back(iteration);
    spans.assign(reported.begin(), reported.end());
  }
  void found_nonfinite(Iteration iteration, LayerId layer) override {
    nonfinite.emplace_back(iteration, layer.index());
  }
  std::vector<Iteration> iterations;
  std::vector<DeviceSpan> spans;
  std::vector<std::pair<Iteration, std::size_t>> nonfinite;
};

TEST(GpuTest, AStepGivesTheGradientsOfTheHost) {
  NEEDS_GPU();
  const auto host = learner_on("cpu");
  const auto device = learner_on("cuda");
  ASSERT_EQ(largest_difference(host->parameters(), device->parameters()), 0);
  RecordedHooks host_hooks;
  RecordedHooks device_hooks;
  const auto host_loss = host->step(0, host_hooks);
  EXPECT_NEAR(*device->step(0, device_hooks), *host_loss, 1e-2);
  EXPECT_LT(largest_difference(host->gradients(), device->gradients()), 1e-2);
  EXPECT_GT(largest_difference(host->gradients(), std::vector<float>(host->gradients().size())),
            0.05);
  EXPECT_EQ(device_hooks.calls, host_hooks.calls);
}

TEST(GpuTest, AStepReadsTheParametersThatTheHostHasAtThatMoment) {
  NEEDS_GPU();
  const auto learner = learner_on("cuda");
  RecordedHooks hooks;
  const auto before = learner->step(0, hooks);
  std::ranges::fill(learner->parameters(), 0.0F);
  EXPECT_NEAR(*learner->step(0, hooks), std::log(10.0), 1e-5);
  EXPECT_GT(std::abs(*before - std::log(10.0)), 1e-4);
  EXPECT_NEAR(learner->evaluate()->loss, std::log(10.0), 1e-5);
}

TEST(GpuTest, GradientsGoWhereTheyAreSent) {
  NEEDS_GPU();
  const auto learner = learner_on("cuda");
  const std::shared_ptr<float[]> further = learner->further_gradients();
  const std::span<float> elsewhere(further.get(), learner->gradients().size());
  RecordedHooks hooks;
  learner->step(0, hooks);
  const std::vector<float> own(learner->gradients().begin(), learner->gradients().end());
  learner->gradients_into(elsewhere);
  learner->step(0, hooks);
  EXPECT_LT(largest_difference(own, elsewhere), 1e-5);
}

TEST(GpuTest, TellsWhenEveryLayerWasComputedAndCopied) {
  NEEDS_GPU();
  const auto learner = learner_on("cuda");
  if (!learner->times_itself()) {
    SKIP_AS_INAPPLICABLE("this LibTorch cannot measure the time between events");
  }
  SpanHooks hooks;
  learner->step(0, hooks);
  using Task = DeviceSpan::Task;
  for (const Task task : {Task::kForward, Task::kBackward, Task::kCopyIn, Task::kCopyOut}) {
    std::set<std::size_t> layers;
    for (const DeviceSpan& span : hooks.spans) {
      EXPECT_GE(span.begin_ago, span.end_ago);
      if (span.task == task) {
        EXPECT_TRUE(layers.insert(span.layer.index()).second);
      }
    }
    EXPECT_EQ(layers.size(), learner->layers().size());
  }
}

TEST(GpuTest, FindsWhatIsNotFiniteInAnyLayer) {
  NEEDS_GPU();
  const auto learner = learner_on("cuda");
  RecordedHooks hooks;
  learner->step(0, hooks);
  const std::vector<Layer>& layers = learner->layers();
  ASSERT_TRUE(
      std::ranges::any_of(layers, [](const Layer& layer) { return layer.range.size() > 200'000; }));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    EXPECT_TRUE(learner->gradient_is_finite(LayerId(l))) << l;
  }
  std::ranges::fill(learner->parameters(), std::numeric_limits<float>::infinity());
  learner->step(1, hooks);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    EXPECT_FALSE(learner->gradient_is_finite(LayerId(l))) << l;
  }
}

// The parameters of both workers.
std::vector<std::vector<float>> train_both(const Strategy& strategy, bool learners_update) {
  const LearnerFactory factory = *make_torch_learners(task_on("cuda"));
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(factory(0));
  learners.push_back(factory(1));
  Job job;
  job.layers = learners[0]->layers();
  job.topology = Topology(2, 1, 0);
  job.strategy = strategy;
  job.strategy.learners_update = learners_update;
  const Assembly assembly = assemble(job);
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  TrainingState state(job.topology, learners, *assembly.chunks, job.strategy, rule);
  const Clock clock;
  train_on_threads({.topology = job.topology,
                    .chunks = *assembly.chunks,
                    .strategy = job.strategy,
                    .rules = *assembly.rules,
                    .hosts = assembly.protocols,
                    .state = state,
                    .last = 5,
                    .clock = clock,
                    .on_step = {},
                    .on_boundary = {}});
  std::vector<std::vector<float>> parameters;
  for (const auto& learner : learners) {
    parameters.emplace_back(learner->parameters().begin(), learner->parameters().end());
  }
  return parameters;
}

std::vector<float> train(const Strategy& strategy, bool learners_update) {
  return train_both(strategy, learners_update).front();
}

std::vector<float> train(const std::string& preset, bool learners_update = false) {
  return train(find_preset(preset)->strategy, learners_update);
}

TEST(GpuTest, WorkersShareADeviceAndPresetsAgree) {
  NEEDS_GPU();
  const std::vector<float> p3 = train("p3");
  const std::vector<float> kvstore = train("kvstore");
  EXPECT_LT(largest_difference(p3, kvstore), 1e-3);
  EXPECT_GT(largest_difference(p3, learner_on("cuda")->parameters()), 1e-3);
}

TEST(GpuTest, UpdatesOnTheDeviceAgreeWithThoseOfHosts) {
  NEEDS_GPU();
  ASSERT_TRUE(learner_on("cuda")->can_update());
  const std::vector<float> on_host = train("p3-allreduce");
  const std::vector<float> on_device = train("p3-allreduce", true);
  EXPECT_LT(largest_difference(on_host, on_device), 1e-3);
  EXPECT_GT(largest_difference(on_device, learner_on("cuda")->parameters()), 1e-3);
}

TEST(GpuTest, PackingOnTheDeviceAgreesWithThatOfHosts) {
  NEEDS_GPU();
  for (const Codec codec : {Codec::kBf16, Codec::kQuantise8}) {
    Strategy strategy = find_preset("p3")->strategy;
    strategy.codec = codec;
    const std::vector<float> on_host = train(strategy, true);
    strategy.learners_pack = true;
    const std::vector<float> on_device = train(strategy, true);
    EXPECT_LT(largest_difference(on_host, on_device), 1e-3);
    EXPECT_GT(largest_difference(on_device, learner_on("cuda")->parameters()), 1e-3);
  }
}

TEST(GpuTest, FactorsOnTheDeviceAgreeWithThoseOfHosts) {
  NEEDS_GPU();
  for (const std::string preset : {"powersgd", "wfbp"}) {
    Strategy strategy = find_preset(preset)->strategy;
    strategy.codec = Codec::kPowerSgd;
    strategy.error_feedback = true;
    const std::vector<float> on_host = train(strategy, true);
    strategy.learners_pack = true;
    const auto on_device = train_both(strategy, true);
    EXPECT_LT(largest_difference(on_host, on_device.front()), 1e-2);
    EXPECT_GT(largest_difference(on_device.front(), learner_on("cuda")->parameters()), 1e-3);
    EXPECT_EQ(on_device.front(), on_device.back());
  }
}

TEST(GpuTest, SelectionOnTheDeviceAgreesWithThatOfHosts) {
  NEEDS_GPU();
  for (const std::string preset : {"p3", "ar-sgd+dgc"}) {
    Strategy strategy = find_preset(preset)->strategy;
    strategy.codec = Codec::kDgc;
    strategy.dgc.sparsity = 0.99;
    const std::vector<float> on_host = train(strategy, false);
    strategy.learners_pack = true;
    const std::vector<float> on_device = train(strategy, false);
    // Between equal values each chooses as it likes.
    EXPECT_LT(largest_difference(on_host, on_device), 5e-2);
    EXPECT_GT(largest_difference(on_device, learner_on("cuda")->parameters()), 1e-3);
  }
}

TEST(GpuTest, LocalStepsOnTheDeviceAgreeWithThoseOfHosts) {
  NEEDS_GPU();
  const Cadence at_once{.every = 2, .outer = Outer::kNesterov, .rate = 0.7};
  const Cadence in_turns{.every = 3, .fragments = 2, .delay = 1, .mix = 0.5};
  for (const Cadence& cadence : {at_once, in_turns}) {
    Strategy strategy = find_preset("local-sgd")->strategy;
    strategy.cadence = cadence;
    const std::vector<float> on_host = train(strategy, false);
    const std::vector<float> on_device = train(strategy, true);
    EXPECT_LT(largest_difference(on_host, on_device), 1e-3);
    EXPECT_GT(largest_difference(on_device, learner_on("cuda")->parameters()), 1e-3);
  }
}

// Local steps whose exchanges begin and end where the test does not come.
std::unique_ptr<Learner> local_learner() {
  auto learner = learner_on("cuda");
  const Assembly assembly = assemble({.layers = learner->layers(),
                                      .topology = Topology(2, 1, 0),
                                      .strategy = find_preset("local-sgd")->strategy});
  learner->step_locally({.rate = {.base = 0.05F}},
                        LayerTurns(Cadence{.every = 1000}, *assembly.chunks));
  return learner;
}

TEST(GpuTest, LocalStepsAreReportedInOrderAndAllOfThem) {
  NEEDS_GPU();
  const auto learner = local_learner();
  SpanHooks hooks;
  std::vector<double> losses;
  for (Iteration t = 0; t < 6; ++t) {
    losses.push_back(*learner->step(t, hooks));
  }
  EXPECT_NE(losses.front(), losses.back());
  learner->settle(6);
  if (learner->times_itself()) {
    EXPECT_EQ(hooks.iterations, (std::vector<Iteration>{0, 1, 2, 3, 4, 5}));
  }
  for (const DeviceSpan& span : hooks.spans) {
    EXPECT_GE(span.begin_ago, span.end_ago);
  }
  EXPECT_TRUE(hooks.nonfinite.empty());
}

TEST(GpuTest, FindsTheLocalStepThatIsNotFinite) {
  NEEDS_GPU();
  const auto learner = local_learner();
  SpanHooks hooks;
  learner->step(0, hooks);
  learner->settle(1);
  std::ranges::fill(learner->parameters(), std::numeric_limits<float>::infinity());
  learner->step(1, hooks);
  learner->step(2, hooks);
  learner->settle(3);
  ASSERT_FALSE(hooks.nonfinite.empty());
  EXPECT_EQ(hooks.nonfinite.front().first, 1);
}

}  // namespace
}  // namespace sluice
