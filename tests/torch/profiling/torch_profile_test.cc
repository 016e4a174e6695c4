#include "torch/profiling/torch_profile.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "torch/recorded_hooks.h"

namespace sluice {
namespace {

constexpr double kUnlimited = 1e30;

TorchTask task_of(const std::string& model, std::int64_t batch) {
  const SampleForm form = *model_form(model, 0);
  const DataSplit split = make_synthetic({.sample_shape = form.shape,
                                          .classes = form.classes,
                                          .train_samples = batch,
                                          .test_samples = 1});
  TorchTask task;
  task.model = model;
  task.train = std::make_shared<const DataSet>(split.train);
  task.test = std::make_shared<const DataSet>(split.test);
  task.batch = batch;
  return task;
}

Profile estimate(const std::string& model, std::int64_t batch, const DeviceSpeed& speed) {
  const auto profile = estimate_profile(task_of(model, batch), speed);
  EXPECT_TRUE(profile) << profile.error().message();
  return *profile;
}

void expect_layers_of_the_learner(const Profile& profile, const TorchTask& task) {
  const auto learner = (*make_torch_learners(task))(0);
  const std::vector<Layer> layers = profile.layout();
  ASSERT_EQ(layers.size(), learner->layers().size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].name, learner->layers()[i].name);
    EXPECT_EQ(layers[i].range, learner->layers()[i].range);
  }
}

// A clock that advances by a quarter of a second per call, so that the measured times are known.
TEST(TorchProfileTest, MeasuresEveryLayer) {
  const TorchTask task = task_of("lenet", 2);
  double now = 0;
  const auto profile = measure_profile(task, [&] { return now += 0.25; });
  ASSERT_TRUE(profile) << profile.error().message();
  EXPECT_EQ(profile->name, "lenet");
  EXPECT_EQ(profile->batch, 2);
  EXPECT_FALSE(profile->estimated);
  expect_layers_of_the_learner(*profile, task);
  for (std::size_t i = 0; i < profile->layers.size(); ++i) {
    // The first layer includes the time before its read and after its final gradient.
    const double extra = i == 0 ? 250'000 : 0;
    EXPECT_NEAR(to_us(profile->layers[i].forward), 250'000 + extra, 1e-3);
    EXPECT_NEAR(to_us(profile->layers[i].backward), 250'000 + extra, 1e-3);
    EXPECT_NEAR(to_us(profile->layers[i].forward_iqr), 0, 1e-3);
  }
}

TEST(TorchProfileTest, EstimatesOperationsWhereMemoryIsFast) {
  const Profile profile = estimate("lenet", 8, {.flops = 1e9, .bytes = kUnlimited});
  EXPECT_TRUE(profile.estimated);
  expect_layers_of_the_learner(profile, task_of("lenet", 8));
  const double conv1 = 2.0 * 8 * (24 * 24) * 20 * (5 * 5);
  const double fc1 = 2.0 * 8 * 800 * 500;
  EXPECT_NEAR(to_us(profile.layers[0].forward), conv1 / 1e3, 1e-3);
  EXPECT_NEAR(to_us(profile.layers[2].forward), fc1 / 1e3, 1e-3);
  for (const LayerProfile& layer : profile.layers) {
    EXPECT_NEAR(to_us(layer.backward), 2 * to_us(layer.forward), 1e-3);
  }
}

TEST(TorchProfileTest, EstimatesBytesWhereArithmeticIsFast) {
  const Profile one = estimate("mlp", 2, {.flops = kUnlimited, .bytes = 1e9});
  const Profile many = estimate("mlp", 200, {.flops = kUnlimited, .bytes = 1e9});
  // The last layer: its parameters once, its inputs and outputs per sample, and the loss.
  const double parameters = 4 * (500 * 10 + 10);
  EXPECT_GT(to_us(one.layers[2].forward), parameters / 1e3);
  const double grown = to_us(many.layers[2].forward) - parameters / 1e3;
  EXPECT_NEAR(grown, 100 * (to_us(one.layers[2].forward) - parameters / 1e3), 1e-2);
}

TEST(TorchProfileTest, MoreSamplesAndSlowerDevicesTakeLonger) {
  const DeviceSpeed speed{.flops = 1e12, .bytes = 5e10};
  const Profile base = estimate("cifar100-cnn", 4, speed);
  const Profile more = estimate("cifar100-cnn", 8, speed);
  const Profile slow = estimate("cifar100-cnn", 4, {.flops = 5e11, .bytes = 5e10});
  const Profile narrow = estimate("cifar100-cnn", 4, {.flops = 1e12, .bytes = 2.5e10});
  const Profile half = estimate("cifar100-cnn", 4, {.flops = 5e11, .bytes = 2.5e10});
  for (std::size_t i = 0; i < base.layers.size(); ++i) {
    const double time = to_us(base.layers[i].forward);
    EXPECT_GT(to_us(more.layers[i].forward), time);
    EXPECT_GE(to_us(slow.layers[i].forward), time);
    EXPECT_GE(to_us(narrow.layers[i].forward), time);
    EXPECT_NEAR(to_us(half.layers[i].forward), 2 * time, 1e-3);
  }
}

TEST(TorchProfileTest, RefusesWhatCannotBe) {
  TorchTask task = task_of("lenet", 2);
  task.model = "lennet";
  EXPECT_FALSE(estimate_profile(task, {1e9, 1e9}));
}

}  // namespace
}  // namespace sluice
