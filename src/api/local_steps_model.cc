#include "api/local_steps_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "torch/flat_parameters.h"

namespace sluice {
namespace {

constexpr const char* kStepsTaken = "steps";

// A copy of what a node remembers, as one tensor.
NamedTensor tensor_of(const Remembered& remembered) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(remembered.size())}, at::kFloat);
  auto at = span_of(tensor).begin();
  for (const std::span<float> part : remembered.parts) {
    at = std::ranges::copy(part, at).out;
  }
  return {remembered.name, tensor};
}

}  // namespace

void LocalStepsModel::wait() {
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    release(layer);
  }
}

void LocalStepsModel::with_global_parameters(const std::function<void()>& use) {
  const at::NoGradGuard no_grad;
  wait();
  std::vector<at::Tensor> own;
  const std::span<const float> global = exchange().global_parameters();
  for (std::size_t p = 0; p < tensors().size(); ++p) {
    own.push_back(tensors()[p].detach().clone());
    // It is only read.
    tensors()[p].copy_(part_of({const_cast<float*>(global.data()), global.size()}, p));
  }
  const auto restore = [&] {
    for (std::size_t p = 0; p < own.size(); ++p) {
      tensors()[p].copy_(own[p]);
    }
  };
  try {
    const at::AutoGradMode as_before(true);
    use();
  } catch (...) {
    restore();
    throw;
  }
  restore();
}

std::vector<NamedTensor> LocalStepsModel::exchange_state() {
  std::vector<NamedTensor> state{{kStepsTaken, at::tensor({exchange().steps()}, at::kLong)}};
  for (const Remembered& remembered : exchange().remembered()) {
    state.push_back(tensor_of(remembered));
  }
  return state;
}

void LocalStepsModel::restore_exchange(const Take& take) {
  const NamedTensor steps{kStepsTaken, at::tensor({std::int64_t{0}}, at::kLong)};
  take(steps);
  exchange().go_on_after(steps.tensor.item().toLong(), [&](std::span<const Remembered> all) {
    for (const Remembered& remembered : all) {
      const NamedTensor kept = tensor_of(remembered);
      take(kept);
      auto at = span_of(kept.tensor).begin();
      for (const std::span<float> part : remembered.parts) {
        std::copy_n(at, part.size(), part.begin());
        at += static_cast<std::ptrdiff_t>(part.size());
      }
    }
  });
}

bool LocalStepsModel::bring_up_to_date(std::size_t layer) {
  if (released_[layer] || !exchange().takes_over(layer)) {
    return true;
  }
  const bool at_once = exchange().is_here(layer);
  release(layer);
  return at_once;
}

void LocalStepsModel::release(std::size_t layer) {
  if (released_[layer]) {
    return;
  }
  wait_for(layer);
  released_[layer] = true;
  if (exchange().takes_over(layer)) {
    const at::NoGradGuard no_grad;
    const at::DisableRecordFunctionGuard unwatched;
    for (const std::size_t p : of_layer(layer)) {
      tensors()[p].copy_(part_of(exchange().parameters(), p));
    }
  }
}

void LocalStepsModel::send(LayerId layer) {
  for (const std::size_t p : of_layer(layer.index())) {
    at::Tensor tensor = tensors()[p];
    if (!tensor.grad().defined()) {
      tensor.mutable_grad() = at::zeros_like(tensor);
    }
    check_finite(layer.index(), [&] { return at::isfinite(tensor.grad()).all().item().toBool(); });
  }
  sent_.push_back(layer.index());
}

void LocalStepsModel::end_step(double loss) {
  const at::NoGradGuard no_grad;
  optimizer().step();
  for (const std::size_t layer : std::exchange(sent_, {})) {
    release(layer);
    if (exchange().gives(layer)) {
      for (const std::size_t p : of_layer(layer)) {
        part_of(exchange().parameters(), p).copy_(tensors()[p]);
      }
    }
    exchange().gradient_ready(layer);
  }
  exchange().end_step(loss);
  clear_gradients();
  released_.assign(released_.size(), false);
}

}  // namespace sluice
