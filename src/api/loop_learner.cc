#include "api/loop_learner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "drivers/realtime/gate.h"
#include "torch/network_setup.h"

namespace sluice {
namespace {

// The parameters that are trained, each once.
std::vector<NamedTensor> trained_of(const LoopWorker::NamedParameters& parameters) {
  std::vector<NamedTensor> trained;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) {
      continue;
    }
    if (tensor.scalar_type() != at::kFloat || !tensor.device().is_cpu()) {
      throw std::invalid_argument("parameter " + name +
                                  " must be of type float and in host memory");
    }
    trained.push_back({name, tensor});
  }
  if (trained.empty()) {
    throw std::invalid_argument("no parameter requires a gradient");
  }
  return trained;
}

// Gives a clear error before LibTorch gives its own.
void check_loss(const at::Tensor& loss) {
  if (!loss.defined()) {
    throw std::invalid_argument("the closure of step() returned no tensor: return the loss");
  }
  if (loss.numel() != 1) {
    throw std::invalid_argument(fmt::format(
        "the closure of step() returned a tensor of shape [{}], expected a single number: return "
        "the mean over the batch, such as loss.mean()",
        fmt::join(loss.sizes().vec(), ", ")));
  }
  if (!loss.requires_grad()) {
    throw std::invalid_argument(
        "the closure of step() returned a loss without a gradient: compute it from the attached "
        "parameters, without NoGradGuard and detach()");
  }
}

}  // namespace

void LoopLearner::attach(const NamedParameters& parameters, const std::function<void()>& forward) {
  if (replica_) {
    throw std::logic_error("attach() may be called only once");
  }
  const std::vector<NamedTensor> trained = trained_of(parameters);
  Layout layout = record_layout(trained, forward);
  const std::vector<at::Tensor> tensors = parameters_in_order(trained, layout);
  replica_.reset(new Replica{std::move(layout), FlatParameters(tensors, c10::kCPU),
                             ForwardGate(tensors), GradientHooks(tensors)});
  {
    const std::lock_guard lock(mutex_);
    attached_ = true;
  }
  changed_.notify_all();
}

double LoopLearner::step(const std::function<at::Tensor()>& loss) {
  if (taken_ == iterations_) {
    throw std::logic_error(
        fmt::format("the loop has taken more steps than its {} iterations", iterations_));
  }
  if (!opens()) {
    throw Stopped();
  }
  const auto check_alone = [this, iteration = taken_] {
    if (taken_ != iteration) {
      throw std::logic_error("step() was called in the closure of step(): call it after that step");
    }
  };
  const at::Tensor result = replica_->gate.run(loss, [&](std::size_t parameter) {
    check_alone();
    calls_->before_read(parameter);
  });
  check_alone();
  check_loss(result);
  calls_->forward_done();
  replica_->flat.zero_gradients();
  replica_->gradient_hooks.backward(
      result, [&](std::size_t parameter) { calls_->gradient_final(parameter); });
  calls_->backward_done();
  calls_.reset();
  ++taken_;
  const double value = result.item().toDouble();
  {
    const std::lock_guard lock(mutex_);
    loss_ = value;
    hooks_ = nullptr;
  }
  changed_.notify_all();
  return value;
}

void LoopLearner::wait() {
  if (taken_ < iterations_ && opens()) {
    for (std::size_t p = 0; p < replica_->layout.order.size(); ++p) {
      calls_->before_read(p);
    }
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return run_ended_; });
  if (broken_off_) {
    throw Cancelled();
  }
}

bool LoopLearner::opens() {
  if (!replica_) {
    throw std::logic_error("attach() must come before the first step");
  }
  if (calls_) {
    return true;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return hooks_ != nullptr || run_ended_; });
  if (hooks_ == nullptr && broken_off_) {
    throw Cancelled();
  }
  if (hooks_ == nullptr) {
    return false;
  }
  calls_.emplace(replica_->layout, *hooks_);
  return true;
}

std::optional<double> LoopLearner::step(Iteration /*iteration*/, StepHooks& hooks) {
  std::unique_lock lock(mutex_);
  hooks_ = &hooks;
  changed_.notify_all();
  changed_.wait(lock, [&] { return hooks_ == nullptr || loop_ended_; });
  if (std::exchange(hooks_, nullptr) != nullptr) {
    fail_loop();
  }
  return loss_;
}

void LoopLearner::wait_until_attached() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return attached_ || loop_ended_; });
  if (!attached_) {
    fail_loop();
  }
}

void LoopLearner::fail_loop() const {
  rethrow();
  throw std::logic_error(
      fmt::format("the loop of worker {} ended after {} of {} steps", rank_, taken_, iterations_));
}

void LoopLearner::rethrow() const {
  if (loop_failure_) {
    std::rethrow_exception(loop_failure_);
  }
}

void LoopLearner::loop_ended(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    loop_ended_ = true;
    loop_failure_ = std::move(failure);
  }
  changed_.notify_all();
}

void LoopLearner::run_ended(bool broken_off) {
  {
    const std::lock_guard lock(mutex_);
    run_ended_ = true;
    broken_off_ = broken_off;
  }
  changed_.notify_all();
}

}  // namespace sluice
