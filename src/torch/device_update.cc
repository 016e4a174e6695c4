#include "torch/device_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#if __has_include(<ATen/ops/_fused_adamw.h>)  // from LibTorch 2.0 on
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#define SLUICE_FUSED_ADAM 1
#endif

#include <cmath>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

void sgd(const UpdateStep& of, at::Tensor& w, at::Tensor& g, std::vector<at::Tensor>& state) {
  const float momentum = of.rule.momentum;
  if (momentum == 0) {
    w.sub_(g, of.rate);
    return;
  }
  at::Tensor& v = state[0];
  v.mul_(momentum).add_(g, of.iteration == 1 ? 1 : 1 - of.rule.options.dampening);
  w.sub_(of.rule.options.nesterov ? g.add_(v, momentum) : v, of.rate);
}

#ifdef SLUICE_FUSED_ADAM
using FusedAdam = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                       at::TensorList, at::TensorList, double, double, double, double, double, bool,
                       bool, const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
#endif

// One pass over the data instead of nine. Returns false if this LibTorch does not have it.
bool adam_at_once([[maybe_unused]] const UpdateStep& of, [[maybe_unused]] const at::Tensor& w,
                  [[maybe_unused]] const at::Tensor& g,
                  [[maybe_unused]] const std::vector<at::Tensor>& state) {
#ifdef SLUICE_FUSED_ADAM
  if (w.is_cuda()) {
    const OptimizerOptions& options = of.rule.options;
    const at::Tensor steps = at::full({1}, static_cast<double>(of.iteration), w.options());
    const bool decoupled = of.rule.optimizer == Optimizer::kAdamW;
    const auto& update = decoupled ? static_cast<FusedAdam*>(at::_fused_adamw_)
                                   : static_cast<FusedAdam*>(at::_fused_adam_);
    update({w}, {g}, {state[0]}, {state[1]}, {}, {steps}, of.rate, options.beta1, options.beta2,
           of.decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false, {}, {});
    return true;
  }
#endif
  return false;
}

void adam(const UpdateStep& of, at::Tensor& w, at::Tensor& g, std::vector<at::Tensor>& state) {
  if (adam_at_once(of, w, g, state)) {
    return;
  }
  if (of.rule.optimizer == Optimizer::kAdamW) {
    w.mul_(1 - of.rate * of.decay);
  } else if (of.decay != 0) {
    g.add_(w, of.decay);
  }
  const OptimizerOptions& options = of.rule.options;
  const auto steps = static_cast<double>(of.iteration);
  const double bias1 = 1 - std::pow(options.beta1, steps);
  const double bias2 = 1 - std::pow(options.beta2, steps);
  state[0].mul_(options.beta1).add_(g, 1 - options.beta1);
  state[1].mul_(options.beta2).addcmul_(g, g, 1 - options.beta2);
  const at::Tensor root = state[1].sqrt().div_(std::sqrt(bias2)).add_(options.epsilon);
  w.addcdiv_(state[0], root, -static_cast<double>(of.rate) / bias1);
}

void adagrad(const UpdateStep& of, at::Tensor& w, at::Tensor& g, std::vector<at::Tensor>& state) {
  const OptimizerOptions& options = of.rule.options;
  const double slowed = 1 + static_cast<double>(of.iteration - 1) * options.lr_decay;
  state[0].addcmul_(g, g, 1);
  w.addcdiv_(g, state[0].sqrt().add_(options.epsilon), -static_cast<double>(of.rate) / slowed);
}

void rmsprop(const UpdateStep& of, at::Tensor& w, at::Tensor& g, std::vector<at::Tensor>& state) {
  const OptimizerOptions& options = of.rule.options;
  state[0].mul_(options.alpha).addcmul_(g, g, 1 - options.alpha);
  at::Tensor variance = state[0];
  if (options.centered) {
    state[1].mul_(options.alpha).add_(g, 1 - options.alpha);
    variance = variance.addcmul(state[1], state[1], -1);
  }
  const at::Tensor root = variance.sqrt().add_(options.epsilon);
  if (of.rule.momentum == 0) {
    w.addcdiv_(g, root, -of.rate);
    return;
  }
  at::Tensor& velocity = state.back();
  velocity.mul_(of.rule.momentum).addcdiv_(g, root, 1);
  w.sub_(velocity, of.rate);
}

}  // namespace

DeviceUpdate::DeviceUpdate(UpdateRule rule, const BatchShare& share, at::Tensor parameters)
    : rule_(std::move(rule)), share_(share), parameters_(std::move(parameters)) {
  check(rule_.elementwise(), "a device updates any range by itself");
  for (std::size_t b = 0; b < rule_.state().size(); ++b) {
    state_.push_back(at::zeros_like(parameters_));
  }
}

void DeviceUpdate::apply(const Range& range, const at::Tensor& sum, Iteration iteration) const {
  if (range.size() == 0) {
    return;
  }
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  const UpdateStep step{.rule = rule_,
                        .rate = rule_.rate.at(iteration),
                        .scale = share_.scale(),
                        .decay = share_.decay(rule_.weight_decay),
                        .iteration = iteration};
  const auto part = [&](const at::Tensor& of) { return of.narrow(0, range.begin, range.size()); };
  at::Tensor w = part(parameters_);
  std::vector<at::Tensor> state;
  for (const at::Tensor& buffer : state_) {
    state.push_back(part(buffer));
  }
  at::Tensor g = sum;
  if (step.scale != 1) {
    g.mul_(step.scale);
  }
  if (rule_.clip_value > 0) {
    g.clamp_(-rule_.clip_value, rule_.clip_value);
  }
  const bool is_adam = rule_.optimizer == Optimizer::kAdam || rule_.optimizer == Optimizer::kAdamW;
  if (step.decay != 0 && !is_adam) {  // Adam has it in its own step
    g.add_(w, step.decay);
  }
  switch (rule_.optimizer) {
    case Optimizer::kSgd:
      return sgd(step, w, g, state);
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return adam(step, w, g, state);
    case Optimizer::kAdagrad:
      return adagrad(step, w, g, state);
    case Optimizer::kRmsprop:
      return rmsprop(step, w, g, state);
    case Optimizer::kLamb:
    case Optimizer::kCount:
      break;
  }
  fail_check("a device knows the optimisers that update element by element");
}

}  // namespace sluice
