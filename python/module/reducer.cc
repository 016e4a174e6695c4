#include "reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "operator_gate.h"

namespace sluice::python {

using torch::autograd::variable_list;

class Reducer::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(Reducer& reducer, std::size_t parameter) : reducer_(reducer), parameter_(parameter) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    reducer_.on_gradient(parameter_);
    return outputs;
  }

 private:
  Reducer& reducer_;
  std::size_t parameter_;
};

Reducer::Reducer(std::vector<at::Tensor> parameters, double scale, Update update,
                 AfterBackward after_backward)
    : parameters_(std::move(parameters)),
      scale_(scale),
      update_(std::move(update)),
      after_backward_(std::move(after_backward)),
      passes_(parameters_.size(), 0),
      expected_(parameters_.size(), 1),
      sent_(parameters_.size(), false) {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    by_storage_[parameters_[p].storage().unsafeGetStorageImpl()].push_back(p);
    auto node = torch::autograd::impl::grad_accumulator(parameters_[p]);
    const auto key = node->add_post_hook(std::make_unique<Hook>(*this, p));
    hooks_.emplace_back(std::move(node), key);
  }
  OperatorGate::of_process().add(*this);
}

Reducer::~Reducer() {
  OperatorGate::of_process().remove(*this);
  for (auto& [node, key] : hooks_) {
    node->del_post_hook(key);
  }
}

void Reducer::place(std::shared_ptr<GradientExchange> exchange, std::vector<Place> places,
                    std::int64_t active) {
  exchange_ = std::move(exchange);
  places_ = std::move(places);
  active_ = active;
  layer_size_.assign(exchange_->layers().size(), 0);
  for (const Place& place : places_) {
    ++layer_size_[place.layer];
  }
  unsent_ = layer_size_;
  due_.assign(layer_size_.size(), false);
  watching_ = false;
}

void Reducer::discard() {
  rethrow();
  if (finished_early_ || std::ranges::find(sent_, true) != sent_.end()) {
    cautious_ = true;
    finish();
    wait_all();
  }
  std::ranges::fill(passes_, 0);
  discarded_ = true;
}

void Reducer::finish_early() {
  bool complete = false;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    complete = complete || may_send(p);
  }
  if (complete && !finished_early_) {
    finish();
    finished_early_ = true;
  }
}

bool Reducer::may_send(std::size_t parameter) const {
  return placed() && passes_[parameter] == expected_[parameter] && (!cautious_ || discarded_) &&
         OperatorGate::of_process().is_eager();
}

void Reducer::finish() {
  rethrow();
  if (std::exchange(finished_early_, false)) {
    return;
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    expected_[p] = std::max<std::int64_t>(passes_[p], 1);
  }
  send_rest(false);
  rethrow();
}

bool Reducer::step_aside() {
  update_all();
  send_rest(true);
  wait_all();
  return exchange_->gradients()[static_cast<std::size_t>(active_)] > 0;
}

void Reducer::send_rest(bool zero) {
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    if (!sent_[p]) {
      update(places_[p].layer);
      send(p, zero);
    }
  }
  exchange_->end_step();
  std::ranges::fill(passes_, 0);
  std::fill(sent_.begin(), sent_.end(), false);
  unsent_ = layer_size_;
  watching_ = false;
  in_backward_ = false;
  discarded_ = false;
}

void Reducer::arm() {
  due_.assign(due_.size(), true);
  all_due_ = due_.size();
  watching_ = true;
}

void Reducer::update_all() {
  for (std::size_t l = 0; l < due_.size(); ++l) {
    update(l);
  }
  watching_ = !placed();
  rethrow();
}

void Reducer::wait_all() {
  for (std::size_t l = 0; l < due_.size(); ++l) {
    exchange_->wait(l);
  }
}

at::Tensor Reducer::sum_of(std::size_t parameter) const {
  return at::from_blob(exchange_->gradients().data() + places_[parameter].offset,
                       parameters_[parameter].sizes(), at::kFloat);
}

bool Reducer::is_used(std::size_t parameter) const {
  return exchange_->gradients()[static_cast<std::size_t>(places_[parameter].flag)] > 0;
}

void Reducer::before_read(const c10::StorageImpl* storage) noexcept {
  const auto found = by_storage_.find(storage);
  if (updating_ || failure_ || found == by_storage_.end()) {
    return;
  }
  try {
    for (const std::size_t p : found->second) {
      if (!placed()) {
        reads_.push_back(p);
      } else if (due_[places_[p].layer]) {
        ++counts_.stops;
        update(places_[p].layer);
      }
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

// The layer, and all others whose sums are here.
void Reducer::update(std::size_t layer) {
  if (!due_[layer]) {
    return;
  }
  if (!exchange_->is_here(layer)) {
    const auto begin = std::chrono::steady_clock::now();
    exchange_->wait(layer);
    ++counts_.waits;
    counts_.waited_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  Layers here;
  for (std::size_t l = 0; l < due_.size(); ++l) {
    if (due_[l] && (l == layer || exchange_->is_here(l))) {
      exchange_->wait(l);
      here.push_back(l);
      due_[l] = false;
    }
  }
  all_due_ -= here.size();
  ++counts_.updates;
  updating_ = true;
  try {
    update_(here);
  } catch (...) {
    updating_ = false;
    throw;
  }
  updating_ = false;
}

void Reducer::on_gradient(std::size_t parameter) {
  if (after_backward_ && !in_backward_ && sending_) {
    in_backward_ = true;
    torch::autograd::Engine::get_default_engine().queue_callback([this] {
      in_backward_ = false;
      after_backward_();
    });
  }
  if (!sending_) {
    return;
  }
  rethrow();
  if (sent_[parameter] || finished_early_) {
    throw std::runtime_error(
        "a gradient changed after it had left: there were more backward passes before step() than "
        "before the last one. Set backward_passes_per_step, run passes that only accumulate under "
        "no_sync(), and clear gradients with zero_grad() of the optimizer that owns them");
  }
  ++passes_[parameter];
  if (may_send(parameter)) {
    update(places_[parameter].layer);
    send(parameter, false);
  }
}

void Reducer::send(std::size_t parameter, bool zero) {
  const at::NoGradGuard no_grad;
  const at::Tensor target = sum_of(parameter);
  const at::Tensor& gradient = parameters_[parameter].grad();
  const bool used = !zero && gradient.defined();
  updating_ = true;  // the gate is not for these operators
  if (used) {
    target.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
    if (scale_ != 1) {
      target.mul_(scale_);
    }
  } else {
    target.zero_();
  }
  updating_ = false;
  const Place& place = places_[parameter];
  exchange_->gradients()[static_cast<std::size_t>(place.flag)] = used ? 1.0F : 0.0F;
  sent_[parameter] = true;
  if (place.layer == 0) {  // it also has the count of those that take part
    exchange_->gradients()[static_cast<std::size_t>(active_)] = zero ? 0.0F : 1.0F;
  }
  if (--unsent_[place.layer] == 0) {
    exchange_->gradient_ready(place.layer);
  }
}

void Reducer::rethrow() {
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

}  // namespace sluice::python
