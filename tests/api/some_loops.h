#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"

// A small net and its loops, for tests of the loops of C++ programs.
namespace sluice {

constexpr std::int64_t kIterations = 12;

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return exit(entry(x).tanh()); }

  torch::nn::Linear exit{register_module("exit", torch::nn::Linear(5, 3))};
  torch::nn::Linear entry{register_module("entry", torch::nn::Linear(6, 5))};
};
TORCH_MODULE(Net);

inline at::Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  at::Tensor tensor = at::zeros(shape);
  Random random(seed);
  for (float* value = tensor.data_ptr<float>(); value != tensor.data_ptr<float>() + tensor.numel();
       ++value) {
    *value = static_cast<float>(random.uniform() - 0.5);
  }
  return tensor;
}

// Parameters that are a function of the seed.
inline Net make_net(std::uint64_t seed) {
  Net net;
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(numbers(parameter.sizes().vec(), ++seed));
  }
  return net;
}

inline at::Tensor loss_of(Net& net, std::size_t rank, std::int64_t iteration) {
  const auto seed = static_cast<std::uint64_t>(iteration) * 10 + rank;
  return at::cross_entropy_loss(net->forward(numbers({4, 6}, seed)),
                                at::full({4}, iteration % 3, at::kLong));
}

inline void attach(LoopWorker& worker, Net& net) {
  worker.attach(*net, [&] { net->forward(at::zeros({1, 6})); });
}

inline LoopOptions options_for(const std::string& preset) {
  LoopOptions options;
  options.preset = preset;
  options.workers = 3;
  options.iterations = kIterations;
  options.learning_rate = 0.2F;
  options.weight_decay = 0.01F;
  return options;
}

inline std::vector<at::Tensor> copies_of(const Net& net) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& parameter : net->parameters()) {
    copies.push_back(parameter.detach().clone());
  }
  return copies;
}

// What all workers together should arrive at, computed by one.
inline std::vector<at::Tensor> expected(const LoopOptions& options) {
  Net net = make_net(100);
  std::vector<at::Tensor> velocity;
  for (const at::Tensor& parameter : net->parameters()) {
    velocity.push_back(at::zeros(parameter.sizes()));
  }
  for (std::int64_t i = 0; i < options.iterations; ++i) {
    std::vector<at::Tensor> losses;
    for (std::size_t rank = 0; rank < options.workers; ++rank) {
      losses.push_back(loss_of(net, rank, i));
    }
    net->zero_grad();
    at::stack(losses).mean().backward();
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parameters = net->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      velocity[p]
          .mul_(options.momentum)
          .add_(parameters[p].grad() + parameters[p] * options.weight_decay);
      parameters[p].sub_(velocity[p] * options.learning_rate);
    }
  }
  return copies_of(net);
}

inline std::string failure_of(const LoopOptions& options,
                              const std::function<void(LoopWorker&)>& loop) {
  try {
    run_loops(options, loop);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

}  // namespace sluice
