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
#include "torch/device_factors.h"
#include "torch/device_selection.h"
#include "torch/event_time.h"

namespace sluice {
namespace {

constexpr Duration kNap = std::chrono::microseconds(20);
// The host looks through fewer values sooner than it could queue the work on the device.
constexpr std::int64_t kLookOnHost = 50'000;
// Parameters to bring to the device or to update at once: the forward pass of the first layer waits
// for all.
constexpr std::int64_t kBatch = 4'000'000;
// Fewer are not worth a batch of their own while the forward pass waits for another layer. A layer
// with more than a batch is not brought then: the other layer, once it is here, would wait for it.
constexpr std::int64_t kWorthAhead = 1'000'000;

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

}  // namespace

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
      between_(streams_.getStreamFromGlobalPool(device_)),
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
  if (strategy.factored()) {
    packer = std::make_unique<DeviceFactors>(strategy, chunks, sender.senders, layers_,
                                             flat_.gradients());
  } else if (strategy.sparse()) {
    packer = std::make_unique<DeviceSelection>(strategy.dgc, sender, ranges_in(chunks),
                                               flat_.gradients(), flat_.values(), parameters_);
  } else {
    packer = std::make_unique<DeviceCodec>(strategy, ranges_in(chunks), flat_.gradients());
  }
  packing_.emplace(std::move(packer), chunks, layers_);
}

// The sums are of left factors that this device has sent, so it has all that these products need.
void DeviceCopies::find_right_factors(std::span<const Range> matrices) {
  {
    const c10::StreamGuard on(between_);
    packing_.value().find_right_factors(matrices, gradients_);
  }
  wait_for(between_);
}

void DeviceCopies::wait_for(c10::Stream stream) const {
  c10::Event done = new_event(device_.type());
  done.record(stream);
  while (!done.query()) {
    sleeper_->rest_until(sleeper_->now() + kNap);
  }
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
  wait_for(in_);
}

StepHooks& DeviceCopies::begin_step(Iteration iteration, StepHooks& hooks) {
  iteration_ = iteration;
  hooks_ = &hooks;
  forward_order_.clear();
  backward_order_.clear();
  for (DeviceTrail& trail : trails_) {
    trail.brought_with.reset();
  }
  return *this;
}

bool DeviceCopies::before_layer(LayerId layer) {
  DeviceTrail& trail = trails_[layer.index()];
  trail.reached.record(compute_);
  const bool at_once = hooks_->before_layer_meanwhile(layer, [this] { bring_ahead(); });
  if (!trail.brought_with && host_leads(layer, iteration_)) {
    bring_from(layer);
  }
  if (trail.brought_with) {
    trails_[trail.brought_with->index()].in_end.block(compute_);
  }
  forward_order_.push_back(layer);
  return at_once;
}

bool DeviceCopies::host_leads(LayerId layer, Iteration iteration) const {
  return !turns_ || !follows_ || turns_->ends_at(layer, iteration);
}

bool DeviceCopies::can_bring(std::size_t layer) const {
  return !trails_[layer].brought_with && host_leads(LayerId(layer), iteration_) &&
         hooks_->released(LayerId(layer));
}

void DeviceCopies::bring_from(LayerId layer) {
  const std::int64_t begin = layers_[layer.index()].range.begin;
  std::size_t end = layer.index() + 1;
  while (end < layers_.size() && layers_[end].range.end - begin <= kBatch && can_bring(end)) {
    ++end;
  }
  bring_together(layer.index(), end);
}

void DeviceCopies::bring_ahead() {
  std::size_t end = layers_.size();  // of those that can be brought together
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (!can_bring(l) || layers_[l].range.size() > kBatch) {
      end = l;
    } else if (layers_[end - 1].range.end - layers_[l].range.begin >= kWorthAhead) {
      bring_together(l, end);
      end = l;
    }
  }
}

void DeviceCopies::bring_together(std::size_t first, std::size_t end) {
  for (std::size_t l = first; l < end; ++l) {
    trails_[l].brought_with = LayerId(first);
  }
  trails_[first].in_begin.record(in_);
  bring(first, end, iteration_);
  trails_[first].in_end.record(in_);
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
  DeviceTrail& trail = trails_[layer.index()];
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
    const auto leaves = [&](LayerId layer) {
      return !turns_ || turns_->meets_at(layer, iteration_ + 1);
    };
    hooks_->device_done(spans_of(trails_, forward_end_, forward_order_, backward_order_, leaves));
  }
}

void DeviceCopies::bring_all() { copy(parameters_, flat_.values(), compute_); }

bool DeviceCopies::has_times() { return TellsTime<c10::Event>; }

}  // namespace sluice
