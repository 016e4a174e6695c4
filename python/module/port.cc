#include "port.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

namespace sluice::python {

Port::Port(const std::vector<at::Tensor>& parameters, double scale,
           std::shared_ptr<GradientExchange> exchange, std::vector<Place> places)
    : parameters_(parameters),
      scale_(scale),
      exchange_(std::move(exchange)),
      places_(std::move(places)) {
  const std::span<float> host = exchange_->gradients();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    sums_.push_back(
        at::from_blob(host.data() + places_[p].offset, parameters_[p].sizes(), at::kFloat));
  }
  const c10::Device device = parameters_.front().device();
  if (!device.is_cpu() && !exchange_->is_alone()) {
    const auto floats = static_cast<std::int64_t>(host.size());
    staging_.emplace(device, at::from_blob(host.data(), {floats}, at::kFloat),
                     exchange_->layers().size());
  }
}

bool Port::is_staged(std::size_t parameter) const {
  return staging_ && parameters_[parameter].device() == staging_->device();
}

void Port::put(std::size_t parameter, bool wanted) {
  const at::Tensor& gradient = parameters_[parameter].grad();
  const bool used = wanted && gradient.defined();
  if (used) {
    fill(parameter, gradient);
  } else {
    clear(parameter);
  }
  number(places_[parameter].flag) = used ? 1.0F : 0.0F;
}

// The copy of a short gradient costs less than an operator. Of a process alone the gradient is the
// sum, and its scale is 1.
void Port::fill(std::size_t parameter, const at::Tensor& gradient) {
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
    fill_by_operators(gradient, plain, target);
  }
}

void Port::fill_by_operators(const at::Tensor& gradient, bool plain, at::Tensor& target) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  if (staging_) {
    staging_->wait_for_fetches();
  }
  if (plain) {
    at::mul_out(target, gradient, at::scalar_tensor(scale_, at::kFloat));
  } else {
    target.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient).mul_(scale_);
  }
}

void Port::clear(std::size_t parameter) {
  if (exchange_->is_alone()) {
    return;
  }
  if (staging_) {
    staging_->wait_for_fetches();
  }
  std::fill_n(sums_[parameter].data_ptr<float>(), sums_[parameter].numel(), 0.0F);
}

void Port::hand_over(std::size_t layer) {
  if (staging_) {
    staging_->close(layer);
    announce_arrivals();
  } else {
    exchange_->gradient_ready(layer);
  }
}

void Port::announce_arrivals() {
  while (const auto layer = staging_->next_arrival()) {
    exchange_->gradient_ready(*layer);
  }
}

void Port::finish() {
  while (staging_ && !staging_->is_empty()) {
    announce_arrivals();
    if (!staging_->is_empty()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

void Port::fetch(const std::vector<std::size_t>& parameters) {
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

at::Tensor Port::sum_of(std::size_t parameter) const {
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

Range Port::updated_with(std::size_t layer) const {
  constexpr std::int64_t kAtOnce = 8'000'000;
  const std::vector<Layer>& layers = exchange_->layers();
  if (!staging_) {
    return {0, static_cast<std::int64_t>(layers.size())};
  }
  std::size_t end = layer + 1;
  while (end < layers.size() && layers[end].range.end - layers[layer].range.begin <= kAtOnce) {
    ++end;
  }
  return {static_cast<std::int64_t>(layer), static_cast<std::int64_t>(end)};
}

}  // namespace sluice::python
