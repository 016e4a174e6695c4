#include "torch/gradient_extremes.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "base/finite.h"
#include "torch/stream_copy.h"

namespace sluice {
namespace {

std::array<std::int64_t, 2> shape_for(std::size_t layers) {
  return {static_cast<std::int64_t>(layers), 2};
}

at::Tensor row_of(LayerId layer, const at::Tensor& by_layer) {
  return by_layer.select(0, static_cast<std::int64_t>(layer.index()));
}

}  // namespace

GradientExtremes::GradientExtremes(std::size_t layers, c10::Device device)
    : by_layer_(at::zeros(shape_for(layers), at::TensorOptions(at::kFloat).device(device))) {}

void GradientExtremes::find(LayerId layer, const at::Tensor& gradient, c10::Stream stream) {
  if (gradient.numel() == 0) {
    return;
  }
  at::Tensor least = row_of(layer, by_layer_).select(0, 0);
  at::Tensor greatest = row_of(layer, by_layer_).select(0, 1);
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  const c10::StreamGuard on(stream);
  at::aminmax_out(least, greatest, gradient);
}

void GradientExtremes::bring(LayerId layer, const at::Tensor& host, c10::Stream stream) const {
  copy(row_of(layer, by_layer_), row_of(layer, host), stream);
}

void GradientExtremes::bring_all(const at::Tensor& host, c10::Stream stream) const {
  copy(by_layer_, host, stream);
}

at::Tensor GradientExtremes::on_host(std::size_t layers) {
  return at::empty(shape_for(layers), at::TensorOptions(at::kFloat).pinned_memory(true)).zero_();
}

bool GradientExtremes::are_finite(LayerId layer, const at::Tensor& host) {
  return all_finite({row_of(layer, host).data_ptr<float>(), 2});
}

}  // namespace sluice
