#include "torch/running_statistics.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice {
namespace {

std::vector<at::Tensor> clones_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> clones;
  for (const at::Tensor& tensor : tensors) {
    clones.push_back(tensor.clone());
  }
  return clones;
}

void fill(const std::vector<at::Tensor>& tensors, double value) {
  for (const at::Tensor& tensor : tensors) {
    tensor.fill_(value);
  }
}

// Those that a pass in training mode changes; frozen parameters, for one, stay.
std::vector<at::Tensor> changing(const std::vector<at::Tensor>& state,
                                 const std::function<void()>& forward) {
  const std::vector<at::Tensor> before = clones_of(state);
  forward();
  std::vector<at::Tensor> found;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].is_floating_point() && !state[i].equal(before[i])) {
      found.push_back(state[i]);
    }
  }
  return found;
}

}  // namespace

// A pass makes r into (1 - m) r + m b, where b belongs to the batch and m to the normalisation. So
// from r = 0 it gives m b, and from r = 1 the same batch gives 1 - m more.
void estimate_statistics(const Network& network,
                         const std::function<void(Iteration batch)>& forward) {
  constexpr Iteration kBatches = 20;
  const std::vector<at::Tensor> state = network.state();
  if (state.empty()) {
    return;
  }
  const std::vector<at::Tensor> running = changing(state, [&] { forward(0); });
  if (running.empty()) {
    return;
  }
  fill(running, 0);
  forward(0);
  const std::vector<at::Tensor> sums = clones_of(running);
  fill(running, 1);
  forward(0);
  std::vector<double> shares;  // m
  for (std::size_t i = 0; i < running.size(); ++i) {
    shares.push_back(1 - running[i].sub(sums[i]).mean().item().toDouble());
  }
  for (Iteration batch = 1; batch < kBatches; ++batch) {
    fill(running, 0);
    forward(batch);
    for (std::size_t i = 0; i < running.size(); ++i) {
      sums[i].add_(running[i]);
    }
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i].copy_(sums[i].div(shares[i] * static_cast<double>(kBatches)));
  }
}

}  // namespace sluice
