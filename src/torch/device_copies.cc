#include "torch/device_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/finite.h"
#include "torch/device_codec.h"
#include "torch/device_selection.h"
#include "torch/event_time.h"

namespace sluice {
namespace {

constexpr Duration kNap = std::chrono::microseconds(20);
// A shorter wait is the time between two events with nothing between them.
constexpr Duration kShortestWait = std::chrono::microseconds(10);
// The host looks through fewer values sooner than it could queue the work on the device.
constexpr std::int64_t kLookOnHost = 50'000;
// Parameters to bring to the device or to update at once: the forward pass of the first layer waits
// for all.
constexpr std::int64_t kBatch = 4'000'000;

// Zero if LibTorch cannot measure it.
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

// Copies between host and device in the order of `stream`, invisible to the gate that watches the
// forward pass.
void copy(const at::Tensor& from, const at::Tensor& to, c10::Stream stream) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  const c10::StreamGuard on(stream);
  to.copy_(from, /*non_blocking=*/true);
}

c10::Event new_event(c10::DeviceType device) {
  return c10::Event(device, c10::EventFlag::BACKEND_DEFAULT);
}

}  // namespace

DeviceCopies::Trail::Trail(c10::DeviceType device)
    : reached(new_event(device)),
      in_begin(new_event(device)),
      in_end(new_event(device)),
      ready(new_event(device)),
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
      extremes_(at::empty({static_cast<std::int64_t>(layers.size()), 2}, flat.values().options())),
      host_extremes_(pinned(extremes_.numel()).view(extremes_.sizes())),
      forward_end_(new_event(device_.type())) {
  check(sleeper_ != nullptr, "a device other than the host needs a sleeper");
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

bool DeviceCopies::gradient_is_finite(LayerId layer) const {
  const Range range = layers_[layer.index()].range;
  const auto row = [&](LayerId of) {
    return span_of(host_extremes_.select(0, static_cast<std::int64_t>(of.index())));
  };
  if (range.size() == 0) {
    return true;
  }
  if (packing_) {
    return packing_->finds_not_finite() ? packing_->is_finite(layer) : all_finite(row(layer));
  }
  if (turns_) {
    // Others were looked at with it. What was clipped no longer tells who it was.
    return all_finite(row(trails_[layer.index()].looked_at_with)) ||
           (!update_->clips() && all_finite(span_of(view_in(flat_.gradients(), range).cpu())));
  }
  return all_finite(range.size() > kLookOnHost ? row(layer) : span_of(view_in(gradients_, range)));
}

void DeviceCopies::update_with(const UpdateRule& rule, const BatchShare& share) {
  const c10::StreamGuard on(in_);
  update_.emplace(rule, share, flat_.values());
}

void DeviceCopies::pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                             const ChunkMap& chunks) {
  const c10::StreamGuard on(out_);
  std::unique_ptr<DevicePacker> packer;
  if (strategy.sparse()) {
    packer = std::make_unique<DeviceSelection>(strategy.dgc, sender, ranges_in(chunks),
                                               flat_.gradients(), flat_.values(), parameters_);
  } else {
    packer = std::make_unique<DeviceCodec>(strategy, ranges_in(chunks), flat_.gradients());
  }
  packing_.emplace(std::move(packer), chunks, layers_);
}

std::vector<at::Tensor> DeviceCopies::state() const {
  std::vector<at::Tensor> all = update_ ? update_->state() : std::vector<at::Tensor>();
  if (packing_) {
    std::ranges::move(packing_->state(), std::back_inserter(all));
  }
  return all;
}

void DeviceCopies::step_locally(const UpdateRule& rule, LayerTurns turns) {
  update_with(rule, BatchShare{});
  turns_.emplace(std::move(turns));
}

void DeviceCopies::settle(Iteration iteration) {
  if (!follows_) {
    return;
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (host_leads(LayerId(l), iteration)) {
      bring(l, l + 1, iteration);
    }
  }
  follows_ = false;
  copy(flat_.values(), parameters_, in_);
  c10::Event done = new_event(device_.type());
  done.record(in_);
  while (!done.query()) {
    sleeper_->rest_until(sleeper_->now() + kNap);
  }
}

StepHooks& DeviceCopies::begin_step(Iteration iteration, StepHooks& hooks) {
  iteration_ = iteration;
  hooks_ = &hooks;
  forward_order_.clear();
  backward_order_.clear();
  for (Trail& trail : trails_) {
    trail.brought_with.reset();
  }
  return *this;
}

bool DeviceCopies::before_layer(LayerId layer) {
  Trail& trail = trails_[layer.index()];
  trail.reached.record(compute_);
  const bool at_once = hooks_->before_layer(layer);
  if (!trail.brought_with && host_leads(layer, iteration_)) {
    bring_from(layer);
    trail.in_end.block(compute_);
  }
  forward_order_.push_back(layer);
  return at_once;
}

bool DeviceCopies::host_leads(LayerId layer, Iteration iteration) const {
  return !turns_ || !follows_ || turns_->ends_at(layer, iteration);
}

void DeviceCopies::bring_from(LayerId layer) {
  const std::int64_t begin = layers_[layer.index()].range.begin;
  std::size_t end = layer.index();
  do {
    trails_[end].brought_with = layer;
    ++end;
  } while (end < layers_.size() && !trails_[end].brought_with &&
           layers_[end].range.end - begin <= kBatch && host_leads(LayerId(end), iteration_) &&
           hooks_->released(LayerId(end)));
  Trail& trail = trails_[layer.index()];
  trail.in_begin.record(in_);
  bring(layer.index(), end, iteration_);
  trail.in_end.record(in_);
}

void DeviceCopies::bring(std::size_t first, std::size_t end, Iteration iteration) {
  Range range{layers_[first].range.begin, layers_[end - 1].range.end};
  if (turns_ || !follows_) {
    return copy(view_in(parameters_, range), view_in(flat_.values(), range), in_);
  }
  const c10::StreamGuard on(in_);
  if (packing_) {
    range = packing_->bring(first, end, gradients_);
  } else {
    copy(view_in(gradients_, range), view_in(flat_.gradients(), range), in_);
  }
  if (update_) {
    update_->apply(range, view_in(flat_.gradients(), range), iteration);
  }
}

void DeviceCopies::forward_done() {
  forward_end_.record(compute_);
  hooks_->forward_done();
}

void DeviceCopies::gradient_ready(LayerId layer) {
  // Autograd calls this on its own thread, whose current stream is that of the pass.
  trails_[layer.index()].ready.record(streams_.getStream(device_));
  backward_order_.push_back(layer);
  if (packing_) {
    trails_[layer.index()].ready.block(out_);
    if (!packing_->finds_not_finite()) {
      look_at_gradient(layer, layers_[layer.index()].range);
    }
    final_.push_back(layer);
    if (packing_->add(layer)) {
      send_codes();
    }
  } else if (!turns_) {
    send_gradient(layer);
  } else {
    const Range range = layers_[layer.index()].range;
    if (!final_.empty() && (layers_[final_.back().index()].range.begin != range.end ||
                            layers_[final_.front().index()].range.end - range.begin > kBatch)) {
      take_local_step();
    }
    final_.push_back(layer);
  }
  announce_arrivals();
}

void DeviceCopies::send_gradient(LayerId layer) {
  Trail& trail = trails_[layer.index()];
  trail.ready.block(out_);
  const Range range = layers_[layer.index()].range;
  if (range.size() > kLookOnHost) {
    look_at_gradient(layer, range);
  }
  copy(view_in(flat_.gradients(), range), view_in(gradients_, range), out_);
  trail.out_end.record(out_);
  on_the_way_.push_back(layer);
}

void DeviceCopies::send_codes() {
  {
    const c10::StreamGuard on(out_);
    packing_->send(gradients_, iteration_ + 1);
  }
  for (const LayerId layer : final_) {
    trails_[layer.index()].out_end.record(out_);
    on_the_way_.push_back(layer);
  }
  final_.clear();
}

void DeviceCopies::take_local_step() {
  if (final_.empty()) {
    return;
  }
  const LayerId last = final_.back();
  trails_[last.index()].ready.block(out_);
  const Range range{layers_[last.index()].range.begin, layers_[final_.front().index()].range.end};
  look_at_gradient(last, range);
  {
    const c10::StreamGuard on(out_);
    update_->apply(range, view_in(flat_.gradients(), range), iteration_ + 1);
  }
  for (const LayerId layer : final_) {
    const Range own = layers_[layer.index()].range;
    if (turns_->meets_at(layer, iteration_ + 1)) {
      copy(view_in(flat_.values(), own), view_in(parameters_, own), out_);
    }
    trails_[layer.index()].looked_at_with = last;
    trails_[layer.index()].out_end.record(out_);
    on_the_way_.push_back(layer);
  }
  final_.clear();
}

void DeviceCopies::look_at_gradient(LayerId layer, const Range& range) {
  if (range.size() == 0) {
    return;
  }
  const at::Tensor gradient = view_in(flat_.gradients(), range);
  const auto row = static_cast<std::int64_t>(layer.index());
  const at::Tensor extremes = extremes_.select(0, row);
  at::Tensor least = extremes.select(0, 0);
  at::Tensor greatest = extremes.select(0, 1);
  {
    const at::NoGradGuard no_grad;
    const at::DisableRecordFunctionGuard unwatched;
    const c10::StreamGuard on(out_);
    at::aminmax_out(least, greatest, gradient);
  }
  copy(extremes, host_extremes_.select(0, row), out_);
}

void DeviceCopies::announce_arrivals() {
  while (!on_the_way_.empty() && trails_[on_the_way_.front().index()].out_end.query()) {
    const LayerId layer = on_the_way_.front();
    on_the_way_.pop_front();
    if (packing_) {
      packing_->arrive(layer, gradients_);
    }
    hooks_->gradient_ready(layer);
  }
}

void DeviceCopies::end_step() {
  if (packing_) {
    send_codes();
    packing_->end_step();
  }
  take_local_step();
  for (announce_arrivals(); !on_the_way_.empty(); announce_arrivals()) {
    sleeper_->rest_until(sleeper_->now() + kNap);
  }
  follows_ = update_.has_value() || packing_.has_value();
  if (has_times()) {
    report_times();
  }
}

// Times count backwards from `now`: the earlier, the larger.
void DeviceCopies::report_times() {
  using Task = DeviceSpan::Task;
  std::vector<DeviceSpan> spans;
  const c10::Event& now = trails_[backward_order_.back().index()].out_end;
  Duration forward_end = between(forward_end_, now);
  for (std::size_t i = forward_order_.size(); i-- > 0;) {
    const LayerId layer = forward_order_[i];
    const Trail& trail = trails_[layer.index()];
    const Duration reached = between(trail.reached, now);
    const LayerId brought_with = trail.brought_with.value_or(layer);
    const Duration in_end =
        trail.brought_with ? between(trails_[brought_with.index()].in_end, now) : reached;
    const Duration begun = std::min(reached, in_end);
    if (trail.brought_with == layer) {
      spans.push_back({layer, Task::kCopyIn, between(trail.in_begin, now), in_end});
    }
    spans.push_back({layer, Task::kForward, begun, std::exchange(forward_end, reached)});
    if (reached - begun >= kShortestWait) {
      spans.push_back({layer, Task::kWait, reached, begun});
    }
  }
  std::reverse(spans.begin(), spans.end());
  Duration since = between(forward_end_, now);
  Duration left = since;
  for (const LayerId layer : backward_order_) {
    const Duration ready = between(trails_[layer.index()].ready, now);
    const Duration out_end = between(trails_[layer.index()].out_end, now);
    spans.push_back({layer, Task::kBackward, std::exchange(since, ready), ready});
    if (!turns_ || turns_->meets_at(layer, iteration_ + 1)) {
      spans.push_back({layer, Task::kCopyOut, std::min(ready, left), out_end});
    }
    left = out_end;
  }
  hooks_->device_done(spans);
}

void DeviceCopies::bring_all() { copy(parameters_, flat_.values(), compute_); }

bool DeviceCopies::has_times() { return TellsTime<c10::Event>; }

}  // namespace sluice
