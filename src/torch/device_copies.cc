#include "torch/device_copies.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/finite.h"
#include "torch/event_time.h"
#include "torch/stream_copy.h"

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
      extremes_(layers.size(), device_),
      loss_(at::empty({}, at::TensorOptions(at::kDouble).pinned_memory(true))),
      step_(device_.type(), layers.size()),
      last_step_(device_.type(), layers.size()) {
  check(sleeper_ != nullptr, "a device other than the host needs a sleeper");
}

at::Tensor DeviceCopies::input(const std::function<at::Tensor()>& make) const {
  at::Tensor made;
  {
    const c10::StreamGuard on(in_);
    made = make();
  }
  c10::Event done = new_event(device_.type());
  done.record(in_);
  done.block(compute_);
  made.record_stream(compute_);
  return made;
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
  if (turns_) {
    return true;  // see report_nonfinite()
  }
  if (packing_ && packing_->finds_not_finite()) {
    return packing_->is_finite(layer);
  }
  const Range range = layers_[layer.index()].range;
  return packing_ || range.size() > kLookOnHost
             ? GradientExtremes::are_finite(layer, step_.extremes)
             : all_finite(span_of(view_in(gradients_, range)));
}

void DeviceCopies::update_with(const UpdateRule& rule, const BatchShare& share) {
  const c10::StreamGuard on(in_);
  update_.emplace(rule, share, flat_.values());
}

void DeviceCopies::pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                             const ChunkMap& chunks) {
  const c10::StreamGuard on(out_);
  packing_.emplace(packer_for(strategy, sender, chunks, layers_, flat_, parameters_), chunks,
                   layers_);
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
  if (runs_ahead_) {
    wait_for(compute_);
    wait_for(out_);
    report(step_, Duration(0));
    runs_ahead_ = false;
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
  std::swap(step_, last_step_);
  step_.begin(iteration);
  forward_seen_.reset();
  return *this;
}

bool DeviceCopies::before_layer(LayerId layer) {
  if (runs_ahead_) {
    last_step_.trails[layer.index()].out_end.block(compute_);
  }
  DeviceTrail& trail = step_.trails[layer.index()];
  trail.reached.record(compute_);
  const bool at_once = hooks_->before_layer_meanwhile(layer, [this] { bring_ahead(); });
  if (!trail.brought_with && host_leads(layer, iteration_)) {
    bring_from(layer);
  }
  if (trail.brought_with) {
    step_.trails[trail.brought_with->index()].in_end.block(compute_);
  }
  step_.forward_order.push_back(layer);
  return at_once;
}

bool DeviceCopies::host_leads(LayerId layer, Iteration iteration) const {
  return !turns_ || !follows_ || turns_->ends_at(layer, iteration);
}

bool DeviceCopies::can_bring(std::size_t layer) const {
  return !step_.trails[layer].brought_with && host_leads(LayerId(layer), iteration_) &&
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
    step_.trails[l].brought_with = LayerId(first);
  }
  step_.trails[first].in_begin.record(in_);
  bring(first, end, iteration_);
  step_.trails[first].in_end.record(in_);
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
  step_.forward_end.record(compute_);
  hooks_->forward_done();
}

void DeviceCopies::gradient_ready(LayerId layer) {
  // Autograd calls this on its own thread, whose current stream is that of the pass.
  step_.trails[layer.index()].ready.record(streams_.getStream(device_));
  step_.backward_order.push_back(layer);
  if (packing_) {
    step_.trails[layer.index()].ready.block(out_);
    if (!packing_->finds_not_finite()) {
      look_at_gradient(layer);
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
  DeviceTrail& trail = step_.trails[layer.index()];
  trail.ready.block(out_);
  const Range range = layers_[layer.index()].range;
  if (range.size() > kLookOnHost) {
    look_at_gradient(layer);
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
    step_.trails[layer.index()].out_end.record(out_);
    on_the_way_.push_back(layer);
  }
  final_.clear();
}

void DeviceCopies::take_local_step() {
  if (final_.empty()) {
    return;
  }
  const LayerId last = final_.back();
  const Range range{layers_[last.index()].range.begin, layers_[final_.front().index()].range.end};
  extremes_.find(last, view_in(flat_.gradients(), range), compute_);
  {
    const c10::StreamGuard on(compute_);
    update_->apply(range, view_in(flat_.gradients(), range), iteration_ + 1);
  }
  for (const LayerId layer : final_) {
    DeviceTrail& trail = step_.trails[layer.index()];
    trail.looked_at_with = last;
    trail.out_end.record(compute_);
    if (turns_->meets_at(layer, iteration_ + 1)) {
      trail.out_end.block(out_);
      const Range own = layers_[layer.index()].range;
      copy(view_in(flat_.values(), own), view_in(parameters_, own), out_);
      trail.out_end.record(out_);
      on_the_way_.push_back(layer);
    } else {
      hooks_->gradient_ready(layer);
    }
  }
  final_.clear();
}

void DeviceCopies::look_at_gradient(LayerId layer) {
  extremes_.find(layer, view_in(flat_.gradients(), layers_[layer.index()].range), out_);
  extremes_.bring(layer, step_.extremes, out_);
}

void DeviceCopies::announce_arrivals() {
  see_forward_end();
  while (!on_the_way_.empty() && step_.trails[on_the_way_.front().index()].out_end.query()) {
    const LayerId layer = on_the_way_.front();
    on_the_way_.pop_front();
    if (packing_) {
      packing_->arrive(layer, gradients_);
    }
    hooks_->gradient_ready(layer);
  }
}

void DeviceCopies::bring_loss(const at::Tensor& loss) { copy(loss, loss_, compute_); }

void DeviceCopies::see_forward_end() {
  if (!forward_seen_ && step_.forward_end.query()) {
    forward_seen_ = sleeper_->now();
  }
}

void DeviceCopies::end_step() {
  if (packing_) {
    send_codes();
    packing_->end_step();
  }
  take_local_step();
  if (turns_) {
    extremes_.bring_all(step_.extremes, compute_);
  }
  for (announce_arrivals(); !on_the_way_.empty() || !forward_seen_; announce_arrivals()) {
    sleeper_->rest_until(sleeper_->now() + kNap);
  }
  follows_ = update_.has_value() || packing_.has_value();
  if (!turns_) {
    return report(step_, Duration(0));
  }
  if (runs_ahead_) {
    const Duration since = sleeper_->now() - *forward_seen_;
    report(last_step_, time_between(last_step_.end(), step_.forward_end) + since);
  }
  runs_ahead_ = true;
}

void DeviceCopies::report(const DeviceStep& step, Duration ended_ago) {
  const auto leaves = [&](LayerId layer) {
    return !turns_ || turns_->meets_at(layer, step.iteration + 1);
  };
  if (turns_) {
    report_nonfinite(step);
  }
  if (has_times()) {
    hooks_->device_done(step.iteration, spans_of(step, ended_ago, leaves));
  }
}

// Neighbours were looked at together. What was not finite has made the layer's parameters so,
// unless it was clipped: then nothing tells which of them it was.
void DeviceCopies::report_nonfinite(const DeviceStep& step) {
  for (const LayerId layer : step.backward_order) {
    const LayerId seen_with = step.trails[layer.index()].looked_at_with;
    const Range range = layers_[layer.index()].range;
    if (!GradientExtremes::are_finite(seen_with, step.extremes) &&
        (update_->clips() || !all_finite(span_of(view_in(flat_.values(), range).cpu())))) {
      hooks_->found_nonfinite(step.iteration, layer);
    }
  }
}

void DeviceCopies::bring_all() { copy(parameters_, flat_.values(), compute_); }

bool DeviceCopies::has_times() { return TellsTime<c10::Event>; }

}  // namespace sluice
