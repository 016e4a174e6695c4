#include "reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>

#include "operator_gate.h"

namespace sluice::python {

using torch::autograd::variable_list;

namespace {

constexpr std::int64_t kAtOnce = 8'000'000;

}  // namespace

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
  sums_.clear();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    sums_.push_back(at::from_blob(exchange_->gradients().data() + places_[p].offset,
                                  parameters_[p].sizes(), at::kFloat));
  }
  const c10::Device device = parameters_.front().device();
  if (!device.is_cpu() && !exchange_->is_alone()) {
    const std::span<float> host = exchange_->gradients();
    staging_.emplace(
        device, at::from_blob(host.data(), {static_cast<std::int64_t>(host.size())}, at::kFloat),
        layer_size_.size());
  }
  unread_.assign(layer_size_.size(), false);
  watch();
}

void Reducer::watch() {
  const bool on = !placed() || all_due_ > 0 || awaits_backward_;
  if (watching_ != on) {
    watching_ = on;
    OperatorGate::of_process().watch();
  }
}

void Reducer::mark(std::size_t parameter, bool is_gradient) {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  marks_.push_back({parameter, is_gradient, std::chrono::duration<double>(since_start).count()});
}

void Reducer::discard() {
  rethrow();
  if (std::ranges::find(sent_, true) != sent_.end()) {
    cautious_ = true;
    finish();
    wait_all();
  }
  std::ranges::fill(passes_, 0);
  discarded_ = true;
}

bool Reducer::may_send(std::size_t parameter) const {
  return placed() && passes_[parameter] == expected_[parameter] && (!cautious_ || discarded_);
}

void Reducer::finish(std::optional<double> loss) {
  rethrow();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    expected_[p] = std::max<std::int64_t>(passes_[p], 1);
  }
  send_rest(false, loss);
  rethrow();
}

bool Reducer::step_aside() {
  update_all();
  send_rest(true, {});
  wait_all();
  return exchange_->gradients()[static_cast<std::size_t>(active_)] > 0;
}

void Reducer::send_rest(bool zero, std::optional<double> loss) {
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    if (!sent_[p]) {
      update(places_[p].layer);
      send(p, zero);
      counts_.late += unsent_[places_[p].layer] == 0 ? 1 : 0;
    }
  }
  await_arrivals();
  exchange_->end_step(loss);
  std::ranges::fill(passes_, 0);
  std::fill(sent_.begin(), sent_.end(), false);
  unsent_ = layer_size_;
  awaits_backward_ = exchange_->is_recorded();
  unread_.assign(unread_.size(), awaits_backward_);
  watch();
  in_backward_ = false;
  discarded_ = false;
}

void Reducer::arm() {
  due_.assign(due_.size(), true);
  all_due_ = due_.size();
  watch();
}

void Reducer::update_all() {
  for (std::size_t l = 0; l < due_.size(); ++l) {
    update(l);
  }
  watch();
  rethrow();
}

void Reducer::wait_all() {
  for (std::size_t l = 0; l < due_.size(); ++l) {
    exchange_->wait(l);
  }
}

at::Tensor Reducer::sum_of(std::size_t parameter) const {
  if (!is_used(parameter)) {
    return {};
  }
  const at::Tensor& owner = parameters_[parameter];
  if (owner.device().is_cpu() && owner.scalar_type() == at::kFloat) {
    return sums_[parameter];
  }
  if (!is_staged(parameter)) {
    return sums_[parameter].to(owner.device(), owner.scalar_type());
  }
  return staging_->fetched()
      .narrow(0, places_[parameter].offset, owner.numel())
      .view(owner.sizes())
      .to(owner.scalar_type());
}

bool Reducer::is_staged(std::size_t parameter) const {
  return staging_ && parameters_[parameter].device() == staging_->device();
}

void Reducer::fetch(const std::vector<std::size_t>& parameters) {
  std::vector<Range> ranges;
  for (const std::size_t p : parameters) {
    if (is_staged(p) && is_used(p)) {
      ranges.push_back({places_[p].offset, places_[p].offset + parameters_[p].numel()});
    }
  }
  if (!ranges.empty()) {
    staging_->fetch(std::move(ranges));
  }
}

void Reducer::lend_sums(const std::vector<std::size_t>& parameters) {
  fetch(parameters);
  for (const std::size_t p : parameters) {
    lent_.emplace_back(p, std::exchange(parameters_[p].mutable_grad(), sum_of(p)));
  }
}

void Reducer::take_back() {
  for (auto& [parameter, gradient] : lent_) {
    parameters_[parameter].mutable_grad() = std::move(gradient);
  }
  lent_.clear();
}

void Reducer::store_sums() {
  const at::NoGradGuard no_grad;
  std::vector<std::size_t> all(parameters_.size());
  std::iota(all.begin(), all.end(), 0);
  fetch(all);
  for (const std::size_t p : all) {
    at::Tensor& gradient = parameters_[p].mutable_grad();
    const at::Tensor sum = sum_of(p);
    if (!sum.defined() || !gradient.defined() || gradient.is_sparse()) {
      gradient = sum.defined() ? sum.clone() : at::Tensor();
    } else {
      gradient.copy_(sum);
    }
  }
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
        mark(p, false);
        continue;
      }
      note_read(places_[p].layer);
      if (due_[places_[p].layer]) {
        ++counts_.stops;
        update(places_[p].layer);
      }
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Reducer::note_read(std::size_t layer) {
  if (awaits_backward_ && unread_[layer]) {
    unread_[layer] = false;
    exchange_->enter(layer);
  }
}

void Reducer::in_backward_pass() {
  if (awaits_backward_ && std::ranges::find(unread_, false) != unread_.end()) {
    awaits_backward_ = false;
    exchange_->forward_done();
    watch();
  }
}

// The layer, and all others whose sums are here. From a device's point of view they are after it,
// and not too many: its forward pass would wait for all their copies.
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
  std::int64_t parameters = 0;
  for (std::size_t l = staging_ ? layer : 0; l < due_.size(); ++l) {
    parameters += exchange_->layers()[l].range.size();
    if (staging_ && l > layer && parameters > kAtOnce) {
      break;
    }
    if (due_[l] && (l == layer || exchange_->is_here(l))) {
      exchange_->wait(l);
      here.push_back(l);
      due_[l] = false;
    }
  }
  all_due_ -= here.size();
  watch();
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
  if (sent_[parameter]) {
    throw std::runtime_error(
        "a gradient changed after it had left: there were more backward passes before step() than "
        "before the last one. Set backward_passes_per_step, run passes that only accumulate under "
        "no_sync(), and clear gradients with zero_grad() of the optimizer that owns them");
  }
  ++passes_[parameter];
  if (!placed()) {
    mark(parameter, true);
  }
  if (may_send(parameter)) {
    update(places_[parameter].layer);
    send(parameter, false);
    counts_.early += unsent_[places_[parameter].layer] == 0 ? 1 : 0;
  }
}

// The copy of a short gradient costs less than an operator. Of a process alone the gradient is the
// sum, and its scale is 1.
void Reducer::fill(std::size_t parameter, const at::Tensor& gradient) {
  constexpr std::int64_t kShort = 1 << 16;
  at::Tensor& target = sums_[parameter];
  const bool dense = gradient.layout() == at::kStrided && !gradient.is_neg();
  const bool plain = dense && gradient.device().is_cpu() && gradient.scalar_type() == at::kFloat;
  if (dense && exchange_->is_alone()) {
    target = gradient;
  } else if (dense && is_staged(parameter)) {
    staging_->bring(gradient, scale_, target);
  } else if (plain && gradient.is_contiguous() && gradient.numel() <= kShort) {
    const auto scale = static_cast<float>(scale_);
    const float* from = gradient.data_ptr<float>();
    std::transform(from, from + gradient.numel(), target.data_ptr<float>(),
                   [scale](float value) { return scale * value; });
  } else {
    if (staging_) {
      staging_->wait_for_fetches();
    }
    const at::NoGradGuard no_grad;
    updating_ = true;  // the gate is not for these operators
    if (plain) {
      at::mul_out(target, gradient, at::scalar_tensor(scale_, at::kFloat));
    } else {
      target.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient).mul_(scale_);
    }
    updating_ = false;
  }
}

void Reducer::clear(std::size_t parameter) {
  if (exchange_->is_alone()) {
    return;
  }
  if (staging_) {
    staging_->wait_for_fetches();
  }
  std::fill_n(sums_[parameter].data_ptr<float>(), sums_[parameter].numel(), 0.0F);
}

void Reducer::send(std::size_t parameter, bool zero) {
  const at::Tensor& gradient = parameters_[parameter].grad();
  const bool used = !zero && gradient.defined();
  if (used) {
    fill(parameter, gradient);
  } else {
    clear(parameter);
  }
  const Place& place = places_[parameter];
  exchange_->gradients()[static_cast<std::size_t>(place.flag)] = used ? 1.0F : 0.0F;
  sent_[parameter] = true;
  if (place.layer == 0) {  // it also has the count of those that take part
    exchange_->gradients()[static_cast<std::size_t>(active_)] = zero ? 0.0F : 1.0F;
  }
  if (--unsent_[place.layer] > 0) {
    return;
  }
  if (staging_) {
    staging_->close(place.layer);
    announce_arrivals();
  } else {
    exchange_->gradient_ready(place.layer);
  }
}

void Reducer::announce_arrivals() {
  while (const auto layer = staging_->next_arrival()) {
    exchange_->gradient_ready(*layer);
  }
}

void Reducer::await_arrivals() {
  while (staging_ && !staging_->is_empty()) {
    announce_arrivals();
    if (!staging_->is_empty()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

void Reducer::rethrow() {
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

}  // namespace sluice::python
