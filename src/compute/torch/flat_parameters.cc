#include "compute/torch/flat_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "base/check.h"

namespace sluice {
namespace {

std::span<float> span_of(const at::Tensor& flat) {
  return {flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

}  // namespace

FlatParameters::FlatParameters(const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) {
    check(parameter.scalar_type() == at::kFloat && parameter.device().is_cpu(),
          "parameters are floats in the memory of the host");
    elements += parameter.numel();
  }
  values_ = at::zeros({elements}, at::kFloat);
  gradients_ = at::zeros({elements}, at::kFloat);
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters) {
    const auto view_in = [&](const at::Tensor& flat) {
      return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    };
    const at::Tensor value = view_in(values_);
    value.copy_(parameter);
    parameter.set_data(value);
    parameter.mutable_grad() = view_in(gradients_).variable_data();
    offset += parameter.numel();
  }
}

std::span<float> FlatParameters::values() { return span_of(values_); }

std::span<float> FlatParameters::gradients() { return span_of(gradients_); }

void FlatParameters::zero_gradients() { gradients_.zero_(); }

}  // namespace sluice
