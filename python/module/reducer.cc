#include "reducer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "operator_gate.h"

namespace sluice::python {

using torch::autograd::variable_list;

namespace {

// Numbers for which it is worth while to call the owner, or to queue copies, before the last sum is
// here.
constexpr std::int64_t kWorthAhead = 1'000'000;
// A longer layer is not updated while another one is waited for, which would then wait for its
// copy.
constexpr std::int64_t kMostAhead = 4'000'000;

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
  port_.emplace(parameters_, scale_, std::move(exchange), std::move(places));
  active_ = active;
  layer_size_.assign(this->exchange().layers().size(), 0);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    ++layer_size_[port_->layer_of(p)];
  }
  unsent_ = layer_size_;
  due_.assign(layer_size_.size(), false);
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
  return port_->number(active_) > 0;
}

void Reducer::send_rest(bool zero, std::optional<double> loss) {
  for (std::size_t p = parameters_.size(); p-- > 0;) {
    if (!sent_[p]) {
      update(port_->layer_of(p));
      send(p, zero);
      counts_.late += unsent_[port_->layer_of(p)] == 0 ? 1 : 0;
    }
  }
  port_->finish();
  exchange().end_step(loss);
  std::ranges::fill(passes_, 0);
  std::fill(sent_.begin(), sent_.end(), false);
  unsent_ = layer_size_;
  awaits_backward_ = exchange().is_recorded();
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
    exchange().wait(l);
  }
}

void Reducer::lend_sums(const std::vector<std::size_t>& parameters) {
  port_->fetch(parameters);
  for (const std::size_t p : parameters) {
    lent_.emplace_back(p, std::exchange(parameters_[p].mutable_grad(), port_->sum_of(p)));
  }
}

void Reducer::take_back() {
  for (auto& [parameter, gradient] : lent_) {
    parameters_[parameter].mutable_grad() = std::move(gradient);
  }
  lent_.clear();
}

void Reducer::store_sums() {
  std::vector<std::vector<std::size_t>> members(layer_size_.size());
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    members[port_->layer_of(p)].push_back(p);
  }
  std::vector<std::size_t> here;
  std::int64_t numbers = 0;
  for (std::size_t l = members.size(); l-- > 0;) {  // the order of the backward pass
    exchange().wait(l);
    here.insert(here.end(), members[l].begin(), members[l].end());
    numbers += exchange().layers()[l].range.size();
    if (numbers >= kWorthAhead || l == 0) {
      store(here);
      here.clear();
      numbers = 0;
    }
  }
}

void Reducer::store(const std::vector<std::size_t>& parameters) {
  const at::NoGradGuard no_grad;
  port_->fetch(parameters);
  for (const std::size_t p : parameters) {
    at::Tensor& gradient = parameters_[p].mutable_grad();
    const at::Tensor sum = port_->sum_of(p);
    if (!sum.defined() || !gradient.defined() || gradient.is_sparse()) {
      gradient = sum.defined() ? sum.clone() : at::Tensor();
    } else {
      gradient.copy_(sum);
    }
  }
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
      note_read(port_->layer_of(p));
      if (due_[port_->layer_of(p)]) {
        ++counts_.stops;
        update(port_->layer_of(p));
      }
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Reducer::note_read(std::size_t layer) {
  if (awaits_backward_ && unread_[layer]) {
    unread_[layer] = false;
    exchange().enter(layer);
  }
}

void Reducer::in_backward_pass() {
  if (awaits_backward_ && std::ranges::find(unread_, false) != unread_.end()) {
    awaits_backward_ = false;
    exchange().forward_done();
    watch();
  }
}

// The layer, and others whose sums are here.
void Reducer::update(std::size_t layer) {
  if (!due_[layer]) {
    return;
  }
  if (!exchange().is_here(layer)) {
    const auto begin = std::chrono::steady_clock::now();
    exchange().wait(layer, [this] { update_ahead(); });
    ++counts_.waits;
    counts_.waited_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  Layers here;
  const Range with = port_->updated_with(layer);
  for (auto l = static_cast<std::size_t>(with.begin); l < static_cast<std::size_t>(with.end); ++l) {
    if (due_[l] && (l == layer || exchange().is_here(l))) {
      here.push_back(l);
    }
  }
  update_now(here);
}

// While another layer is waited for: those whose sums are here, if they are many.
void Reducer::update_ahead() {
  Layers here;
  std::int64_t numbers = 0;
  for (std::size_t l = due_.size(); l-- > 0;) {
    const std::int64_t size = exchange().layers()[l].range.size();
    if (due_[l] && size <= kMostAhead && exchange().is_here(l)) {
      here.push_back(l);
      numbers += size;
    }
  }
  if (numbers >= kWorthAhead) {
    update_now(here);
  }
}

void Reducer::update_now(const Layers& here) {
  for (const std::size_t l : here) {
    exchange().wait(l);
    due_[l] = false;
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
    update(port_->layer_of(parameter));
    send(parameter, false);
    counts_.early += unsent_[port_->layer_of(parameter)] == 0 ? 1 : 0;
  }
}

void Reducer::send(std::size_t parameter, bool zero) {
  port_->put(parameter, !zero);
  sent_[parameter] = true;
  const std::size_t layer = port_->layer_of(parameter);
  if (layer == 0) {  // it also has the count of those that take part
    port_->number(active_) = zero ? 0.0F : 1.0F;
  }
  if (--unsent_[layer] == 0) {
    port_->hand_over(layer);
  }
}

void Reducer::rethrow() {
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

}  // namespace sluice::python
