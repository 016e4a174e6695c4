// The optimisers against those of LibTorch, and those of devices against both.
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/optim.h>

#include <cmath>
#include <functional>

#include "optimizers/optimizer_state.h"
#include "torch/device_update.h"

namespace sluice {
namespace {

constexpr std::int64_t kCount = 300;
constexpr Iteration kOptimizerSteps = 100;
constexpr std::size_t kOptimizerWorkers = 2;

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

template <class O, class Options>
MakeOptimizer maker(const Options& options) {
  return [options](std::vector<at::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<O>(std::move(parameters), options);
  };
}

// Depends on the parameter, the worker and the time.
float gradient_at(float w, std::int64_t i, std::size_t worker, Iteration t) {
  return 0.3F * w + std::sin(static_cast<float>(i) + 0.1F * static_cast<float>(t)) +
         0.5F * static_cast<float>(worker);
}

std::vector<float> first_values() {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kCount; ++i) {
    values.push_back(std::cos(static_cast<float>(i)));
  }
  return values;
}

at::Tensor mean_gradient(const at::Tensor& w, Iteration t) {
  at::Tensor mean = at::empty_like(w);
  for (std::int64_t i = 0; i < kCount; ++i) {
    float sum = 0;
    for (std::size_t r = 0; r < kOptimizerWorkers; ++r) {
      sum += gradient_at(w.data_ptr<float>()[i], i, r, t);
    }
    mean.data_ptr<float>()[i] = sum / static_cast<float>(kOptimizerWorkers);
  }
  return mean;
}

void expect_equal_to_torch(const UpdateRule& rule, const MakeOptimizer& make) {
  std::vector<float> initial = first_values();
  at::Tensor theirs = at::from_blob(initial.data(), {kCount}, at::kFloat).clone();
  theirs.requires_grad_(true);
  at::Tensor on_device = theirs.detach().clone();
  std::vector<float> ours = initial;
  const auto optimizer = make({theirs});
  const OptimizerState state(rule, ours.size());
  const BatchShare share = BatchShare::all(kOptimizerWorkers);
  const DeviceUpdate device(rule, share, on_device);
  for (Iteration t = 1; t <= kOptimizerSteps; ++t) {
    theirs.mutable_grad() = mean_gradient(theirs.detach(), t);
    optimizer->step();
    std::vector<std::vector<float>> gradients(kOptimizerWorkers);
    std::vector<std::span<const float>> sources;
    for (std::size_t r = 0; r < kOptimizerWorkers; ++r) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        gradients[r].push_back(gradient_at(ours[static_cast<std::size_t>(i)], i, r, t));
      }
      sources.emplace_back(gradients[r]);
    }
    rule.apply(ours, state.part({0, kCount}), sources, share, t);
    const at::Tensor sum = mean_gradient(on_device, t) * static_cast<double>(kOptimizerWorkers);
    device.apply({0, 100}, sum.narrow(0, 0, 100), t);
    device.apply({100, kCount}, sum.narrow(0, 100, kCount - 100), t);
  }
  for (std::int64_t i = 0; i < kCount; ++i) {
    const float expected = theirs.data_ptr<float>()[i];
    ASSERT_NEAR(ours[static_cast<std::size_t>(i)], expected, 1e-6) << i;
    ASSERT_NEAR(on_device.data_ptr<float>()[i], expected, 1e-6) << i;
  }
}

UpdateRule rule_as(Optimizer optimizer, float rate, float momentum, float decay) {
  UpdateRule rule{.rate = {.base = rate}, .momentum = momentum, .weight_decay = decay};
  rule.optimizer = optimizer;
  rule.options = traits_of(optimizer).options;
  return rule;
}

TEST(TorchOptimizers, Sgd) {
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  UpdateRule rule = rule_as(Optimizer::kSgd, 0.05F, 0.9F, 0.01F);
  const auto options = SGDOptions(0.05).momentum(0.9).weight_decay(0.01);
  expect_equal_to_torch(rule, maker<SGD>(options));
  rule.options.nesterov = true;
  expect_equal_to_torch(rule, maker<SGD>(SGDOptions(options).nesterov(true)));
  rule.options.nesterov = false;
  rule.options.dampening = 0.4;
  expect_equal_to_torch(rule, maker<SGD>(SGDOptions(options).dampening(0.4)));
  expect_equal_to_torch(rule_as(Optimizer::kSgd, 0.05F, 0, 0), maker<SGD>(SGDOptions(0.05)));
}

TEST(TorchOptimizers, Adam) {
  using torch::optim::Adam;
  using torch::optim::AdamOptions;
  UpdateRule rule = rule_as(Optimizer::kAdam, 1e-2F, 0, 0.01F);
  expect_equal_to_torch(rule, maker<Adam>(AdamOptions(1e-2).weight_decay(0.01)));
  rule.options.beta1 = 0.8;
  rule.options.beta2 = 0.95;
  rule.options.epsilon = 1e-5;
  expect_equal_to_torch(
      rule, maker<Adam>(
                AdamOptions(1e-2).weight_decay(0.01).betas(std::make_tuple(0.8, 0.95)).eps(1e-5)));
}

TEST(TorchOptimizers, AdamW) {
  using torch::optim::AdamWOptions;
  expect_equal_to_torch(rule_as(Optimizer::kAdamW, 1e-2F, 0, 0.1F),
                        maker<torch::optim::AdamW>(AdamWOptions(1e-2).weight_decay(0.1)));
}

TEST(TorchOptimizers, Adagrad) {
  using torch::optim::AdagradOptions;
  UpdateRule rule = rule_as(Optimizer::kAdagrad, 0.05F, 0, 0.01F);
  rule.options.lr_decay = 0.02;
  expect_equal_to_torch(
      rule, maker<torch::optim::Adagrad>(AdagradOptions(0.05).weight_decay(0.01).lr_decay(0.02)));
}

TEST(TorchOptimizers, Rmsprop) {
  using torch::optim::RMSprop;
  using torch::optim::RMSpropOptions;
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.5}) {
      UpdateRule rule = rule_as(Optimizer::kRmsprop, 1e-3F, static_cast<float>(momentum), 0.01F);
      rule.options.centered = centered;
      expect_equal_to_torch(
          rule, maker<RMSprop>(
                    RMSpropOptions(1e-3).weight_decay(0.01).momentum(momentum).centered(centered)));
    }
  }
}

}  // namespace
}  // namespace sluice
