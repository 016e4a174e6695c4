#include "compute/torch/device_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>

#include <cmath>
#include <utility>

#include "base/check.h"
#include "compute/torch/event_time.h"

namespace sluice {
namespace {

constexpr Duration kNap = std::chrono::microseconds(20);
// Shorter waits are the time between two events that nothing lies between.
constexpr Duration kShortestWait = std::chrono::microseconds(10);

// Nothing where LibTorch cannot tell.
template <class Event>
Duration between(const Event& begin, const Event& end) {
  if constexpr (TellsTime<Event>) {
    return from_us(begin.elapsedTime(end) * 1e3);
  } else {
    return Duration(0);
  }
}

at::Tensor pinned(std::int64_t elements) {
  return at::empty({elements}, at::TensorOptions(at::kFloat).pinned_memory(true)).zero_();
}

// Copies a layer between the flat buffers of host and device, when `stream` comes to it.
void copy(const at::Tensor& from, const at::Tensor& to, const Range& range, c10::Stream stream) {
  const at::NoGradGuard no_grad;
  const c10::StreamGuard on(stream);
  to.narrow(0, range.begin, range.size())
      .copy_(from.narrow(0, range.begin, range.size()), /*non_blocking=*/true);
}

c10::Event new_event(c10::DeviceType device) {
  return c10::Event(device, c10::EventFlag::BACKEND_DEFAULT);
}

}  // namespace

DeviceCopies::Trail::Trail(c10::DeviceType device)
    : reached(new_event(device)),
      in_begin(new_event(device)),
      in_end(new_event(device)),
      begun(new_event(device)),
      ready(new_event(device)),
      out_begin(new_event(device)),
      out_end(new_event(device)) {}

DeviceCopies::DeviceCopies(FlatParameters& flat, const std::vector<Layer>& layers,
                           std::shared_ptr<const Sleeper> sleeper)
    : flat_(flat),
      layers_(layers),
      sleeper_(std::move(sleeper)),
      device_(flat.values().device()),
      streams_(device_.type()),
      compute_(streams_.getStreamFromGlobalPool(device_)),
      in_(streams_.getStreamFromGlobalPool(device_)),
      out_(streams_.getStreamFromGlobalPool(device_)),
      parameters_(pinned(flat.values().numel())),
      own_gradients_(pinned(flat.values().numel())),
      gradients_(own_gradients_),
      forward_end_(new_event(device_.type())) {
  check(sleeper_ != nullptr, "who waits for a device has a way to sleep");
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    trails_.emplace_back(device_.type());
  }
}

std::span<float> DeviceCopies::parameters() { return span_of(parameters_); }

std::span<float> DeviceCopies::gradients() { return span_of(gradients_); }

std::shared_ptr<float[]> DeviceCopies::further_gradients() const {
  const auto zeros = std::make_shared<const at::Tensor>(pinned(own_gradients_.numel()));
  return {zeros, zeros->data_ptr<float>()};
}

void DeviceCopies::gradients_into(std::span<float> buffer) {
  check(buffer.size() == gradients().size(), "a gradient buffer is as long as the parameters");
  gradients_ = buffer.data() == span_of(own_gradients_).data()
                   ? own_gradients_
                   : at::from_blob(buffer.data(), own_gradients_.sizes(), at::kFloat);
}

StepHooks& DeviceCopies::begin_step(StepHooks& hooks) {
  hooks_ = &hooks;
  forward_order_.clear();
  backward_order_.clear();
  return *this;
}

bool DeviceCopies::before_layer(LayerId layer) {
  Trail& trail = trails_[layer.index()];
  trail.reached.record(compute_);
  const bool at_once = hooks_->before_layer(layer);
  trail.in_begin.record(in_);
  copy(parameters_, flat_.values(), layers_[layer.index()].range, in_);
  trail.in_end.record(in_);
  trail.in_end.block(compute_);
  trail.begun.record(compute_);
  forward_order_.push_back(layer);
  return at_once;
}

void DeviceCopies::forward_done() {
  forward_end_.record(compute_);
  hooks_->forward_done();
}

void DeviceCopies::gradient_ready(LayerId layer) {
  Trail& trail = trails_[layer.index()];
  // Autograd calls from a thread of its own, where the stream of the pass is the current one.
  trail.ready.record(streams_.getStream(device_));
  trail.ready.block(out_);
  trail.out_begin.record(out_);
  copy(flat_.gradients(), gradients_, layers_[layer.index()].range, out_);
  trail.out_end.record(out_);
  backward_order_.push_back(layer);
  on_the_way_.push_back(layer);
  announce_arrivals();
}

void DeviceCopies::announce_arrivals() {
  while (!on_the_way_.empty() && trails_[on_the_way_.front().index()].out_end.query()) {
    const LayerId layer = on_the_way_.front();
    on_the_way_.pop_front();
    hooks_->gradient_ready(layer);
  }
}

void DeviceCopies::end_step() {
  for (announce_arrivals(); !on_the_way_.empty(); announce_arrivals()) {
    sleeper_->rest_until(sleeper_->now() + kNap);
  }
  if (has_times()) {
    report_times();
  }
}

void DeviceCopies::report_times() {
  using Task = DeviceSpan::Task;
  std::vector<DeviceSpan> spans;
  const c10::Event& now = trails_[backward_order_.back().index()].out_end;
  const auto note = [&](LayerId layer, Task task, const c10::Event& begin, const c10::Event& end) {
    spans.push_back({layer, task, between(begin, now), between(end, now)});
  };
  for (const LayerId layer : forward_order_) {
    const Trail& trail = trails_[layer.index()];
    note(layer, Task::kCopyIn, trail.in_begin, trail.in_end);
    note(layer, Task::kCopyOut, trail.out_begin, trail.out_end);
  }
  for (std::size_t i = 0; i < forward_order_.size(); ++i) {
    const Trail& trail = trails_[forward_order_[i].index()];
    const bool last = i + 1 == forward_order_.size();
    if (between(trail.reached, trail.begun) >= kShortestWait) {
      note(forward_order_[i], Task::kWait, trail.reached, trail.begun);
    }
    note(forward_order_[i], Task::kForward, trail.begun,
         last ? forward_end_ : trails_[forward_order_[i + 1].index()].reached);
  }
  const c10::Event* since = &forward_end_;
  for (const LayerId layer : backward_order_) {
    const c10::Event& ready = trails_[layer.index()].ready;
    note(layer, Task::kBackward, *since, ready);
    since = &ready;
  }
  hooks_->device_done(spans);
}

void DeviceCopies::bring_all() {
  copy(parameters_, flat_.values(), {0, parameters_.numel()}, compute_);
}

bool DeviceCopies::has_times() { return TellsTime<c10::Event>; }

}  // namespace sluice
