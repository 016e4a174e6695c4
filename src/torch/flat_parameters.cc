#include "torch/flat_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "base/check.h"

namespace sluice {

std::span<float> span_of(const at::Tensor& flat) {
  check(flat.device().is_cpu(), "only host memory has a span");
  return {flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

FlatParameters::FlatParameters(const std::vector<at::Tensor>& parameters, c10::Device device)
    : parameters_(parameters) {
  const at::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters_) {
    check(parameter.scalar_type() == at::kFloat, "parameters are floats");
    offsets_.push_back(elements);
    elements += parameter.numel();
  }
  const auto options = at::TensorOptions(at::kFloat).device(device);
  values_ = at::zeros({elements}, options);
  own_gradients_ = at::zeros({elements}, options);
  gradients_ = own_gradients_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const at::Tensor value = view_in(values_, p);
    value.copy_(parameters_[p]);
    parameters_[p].set_data(value);
    parameters_[p].mutable_grad() = view_in(gradients_, p).variable_data();
  }
}

at::Tensor FlatParameters::view_in(const at::Tensor& flat, std::size_t parameter) const {
  const at::Tensor& like = parameters_[parameter];
  return flat.narrow(0, offsets_[parameter], like.numel()).view(like.sizes());
}

void FlatParameters::gradients_into(std::span<float> buffer) {
  check(buffer.size() == span_of(gradients_).size(),
        "a gradient buffer is as long as the parameters");
  gradients_ = at::from_blob(buffer.data(), {static_cast<std::int64_t>(buffer.size())}, at::kFloat);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    parameters_[p].mutable_grad() = view_in(gradients_, p).variable_data();
  }
}

void FlatParameters::zero_gradients() { gradients_.zero_(); }

}  // namespace sluice
