#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// A small net and its loops, for tests of the loops of C++ programs.
namespace sluice {

constexpr std::int64_t kSteps = 12;

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return exit(entry(x).tanh()); }

  torch::nn::Linear exit{register_module("exit", torch::nn::Linear(5, 3))};
  torch::nn::Linear entry{register_module("entry", torch::nn::Linear(6, 5))};
};
TORCH_MODULE(Net);

inline at::Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  return at::rand(shape, at::make_generator<at::CPUGeneratorImpl>(seed)) - 0.5;
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

inline at::Tensor loss_of(Net& net, std::size_t rank, std::int64_t step) {
  const auto seed = static_cast<std::uint64_t>(step) * 10 + rank;
  return at::cross_entropy_loss(net->forward(numbers({4, 6}, seed)),
                                at::full({4}, step % 3, at::kLong));
}

inline LoopModel& attach(LoopWorker& worker, Net& net, torch::optim::Optimizer& optimizer,
                         const LoopOptions& options = {}) {
  return worker.attach(
      *net, optimizer,
      [&] {
        net->forward(at::zeros({1, 6}));
      },
      options);
}

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>;

inline std::unique_ptr<torch::optim::Optimizer> make_adam(const std::vector<at::Tensor>& tensors) {
  return std::make_unique<torch::optim::Adam>(tensors, torch::optim::AdamOptions(0.05));
}

// A schedule: the learning rate falls in the middle.
inline void change_rate(torch::optim::Optimizer& optimizer, std::int64_t step) {
  for (auto& group : optimizer.param_groups()) {
    if (step == kSteps / 2) {
      group.options().set_lr(group.options().get_lr() / 4);
    }
  }
}

inline std::vector<at::Tensor> copies_of(const Net& net) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& parameter : net->parameters()) {
    copies.push_back(parameter.detach().clone());
  }
  return copies;
}

// What all workers together should arrive at, computed by one without Sluice.
inline std::vector<at::Tensor> expected(std::size_t workers, const MakeOptimizer& make) {
  Net net = make_net(100);
  const auto optimizer = make(net->parameters());
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::vector<at::Tensor> losses;
    for (std::size_t rank = 0; rank < workers; ++rank) {
      losses.push_back(loss_of(net, rank, step));
    }
    optimizer->zero_grad();
    at::stack(losses).mean().backward();
    optimizer->step();
    change_rate(*optimizer, step);
  }
  return copies_of(net);
}

// The global parameters after local steps of all workers, computed by one process without Sluice:
// of local-sgd, diloco, and of noloco with two workers, who always meet. With two fragments the
// layers take turns, that of the exit second.
inline std::vector<at::Tensor> expected_locally(std::size_t workers, const MakeOptimizer& make,
                                                const LoopOptions& options) {
  const at::NoGradGuard no_grad;
  const double momentum = options.preset == "local-sgd" ? 0
                          : options.preset == "noloco"  ? 0.5
                                                        : 0.9;
  const double rate = options.outer_rate.value_or(options.preset == "local-sgd" ? 1 : 0.7);
  const std::int64_t every = options.every.value();
  const std::int64_t fragments = options.fragments.value_or(1);
  const double mix = options.outer_mix.value_or(0);
  std::vector<Net> nets;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  for (std::size_t rank = 0; rank < workers; ++rank) {
    nets.push_back(make_net(100));
    optimizers.push_back(make(nets.back()->parameters()));
  }
  std::vector<at::Tensor> global = copies_of(nets[0]);
  std::vector<at::Tensor> velocity(global.size(), at::zeros({}));
  std::vector<std::vector<at::Tensor>> outer(global.size());  // by parameter, oldest first
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    for (std::size_t rank = 0; rank < workers; ++rank) {
      const at::AutoGradMode with_gradients(true);
      optimizers[rank]->zero_grad();
      loss_of(nets[rank], rank, step - 1).backward();
      optimizers[rank]->step();
      change_rate(*optimizers[rank], step - 1);
    }
    for (std::size_t p = 0; p < global.size(); ++p) {
      const std::int64_t fragment = fragments == 1 || p >= 2 ? 0 : 1;
      const std::int64_t turn = (fragment + 1) * every / fragments % every;
      if (step % every == turn) {
        at::Tensor sum = at::zeros_like(global[p]);
        for (const Net& net : nets) {
          sum += global[p] - net->parameters()[p];
        }
        outer[p].push_back(sum / static_cast<double>(workers));
      }
      const std::int64_t begun = step - options.outer_delay.value_or(0);
      if (begun <= 0 || begun % every != turn) {
        continue;
      }
      const at::Tensor gradient = outer[p].front();
      outer[p].erase(outer[p].begin());
      if (options.preset == "noloco") {
        velocity[p] = momentum * velocity[p] - rate * gradient;
        global[p] = global[p] + velocity[p];
      } else {
        velocity[p] = momentum * velocity[p] + gradient;
        global[p] = global[p] - rate * (gradient + momentum * velocity[p]);
      }
      for (const Net& net : nets) {
        at::Tensor own = net->parameters()[p];
        own.copy_(mix * own + (1 - mix) * global[p]);
      }
    }
  }
  return global;
}

// The same with Sluice, by each worker; `parts` micro-batches are the same batch several times.
inline std::vector<at::Tensor> trained(LoopWorker& worker, const MakeOptimizer& make,
                                       const LoopOptions& options = {}, int parts = 1) {
  Net net = make_net(100 + worker.rank());  // all begin as rank 0
  const auto optimizer = make(net->parameters());
  LoopModel& model = attach(worker, net, *optimizer, options);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto loss = [&] { return loss_of(net, worker.rank(), step) / parts; };
    for (int part = 1; part < parts; ++part) {
      model.accumulate(loss);
    }
    model.step(loss);
    change_rate(*optimizer, step);
  }
  std::vector<at::Tensor> global;
  model.with_global_parameters([&] { global = copies_of(net); });
  return global;
}

// Part of a training that goes on from its checkpoint in the folder and leaves one, with a buffer
// that counts steps.
inline std::vector<at::Tensor> trained_until(LoopWorker& worker, const MakeOptimizer& make,
                                             std::int64_t end, const std::string& folder,
                                             const LoopOptions& options = {}) {
  Net net = make_net(100 + worker.rank());
  const auto optimizer = make(net->parameters());
  LoopModel& model = attach(worker, net, *optimizer, options);
  const at::Tensor count = at::zeros({1}, at::kLong);
  const std::int64_t begin = worker.load_checkpoint(folder, {{"count", count}});
  for (std::int64_t step = begin; step < end; ++step) {
    model.step([&] { return loss_of(net, worker.rank(), step); });
    change_rate(*optimizer, step);
    count.add_(1);
  }
  worker.save_checkpoint(folder, end, {{"count", count}});
  std::vector<at::Tensor> global;
  model.with_global_parameters([&] { global = copies_of(net); });
  return count.item().toLong() == end ? global : std::vector<at::Tensor>();
}

inline bool equal(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  for (std::size_t p = 0; p < one.size() && one.size() == other.size(); ++p) {
    if (!one[p].equal(other[p])) {
      return false;
    }
  }
  return one.size() == other.size();
}

inline bool near(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  for (std::size_t p = 0; p < one.size(); ++p) {
    if (!one[p].allclose(other[p], 1e-5, 1e-6)) {
      return false;
    }
  }
  return one.size() == other.size();
}

}  // namespace sluice
