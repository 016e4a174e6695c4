#include "torch/profiling/flops.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "torch/operator_watch.h"

namespace sluice {
namespace {

using Arguments = c10::ArrayRef<const c10::IValue>;

// One number per axis of an image, or one for all axes.
class PerAxis {
 public:
  explicit PerAxis(const c10::IValue& list) : values_(list.toIntVector()) {}

  std::int64_t operator[](std::int64_t axis) const {
    return values_[values_.size() == 1 ? 0 : static_cast<std::size_t>(axis)];
  }

 private:
  std::vector<std::int64_t> values_;
};

// Every weight is used once per pixel of the output. Arguments: input, weight, bias, stride,
// padding, dilation.
std::int64_t convolution(Arguments arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const at::Tensor& weight = arguments[1].toTensor();
  const PerAxis stride(arguments[3]);
  const PerAxis padding(arguments[4]);
  const PerAxis dilation(arguments[5]);
  std::int64_t places = input.size(0);
  for (std::int64_t axis = 0; axis + 2 < weight.dim(); ++axis) {
    const std::int64_t reach = dilation[axis] * (weight.size(axis + 2) - 1) + 1;
    places *= (input.size(axis + 2) + 2 * padding[axis] - reach) / stride[axis] + 1;
  }
  return 2 * places * weight.numel();
}

// For one matrix, or for each of a batch.
std::int64_t product(const c10::IValue& left, const c10::IValue& right) {
  return 2 * left.toTensor().numel() * right.toTensor().size(-1);
}

std::int64_t flops_by_name(std::string_view name, Arguments arguments) {
  if (name == "aten::convolution") {
    return convolution(arguments);
  }
  if (name == "aten::mm" || name == "aten::bmm") {
    return product(arguments[0], arguments[1]);
  }
  if (name == "aten::addmm" || name == "aten::baddbmm") {
    return product(arguments[1], arguments[2]);
  }
  return 0;
}

}  // namespace

std::int64_t flops_of(const at::RecordFunction& call) {
  return flops_by_name(call.name(), call.inputs());
}

std::int64_t count_flops(const std::function<void()>& work) {
  const WithoutOneDnn guard;
  std::int64_t flops = 0;
  watch_operators(work, [&](const at::RecordFunction& call) { flops += flops_of(call); });
  return flops;
}

WithoutOneDnn::WithoutOneDnn() : before_(at::globalContext().userEnabledMkldnn()) {
  at::globalContext().setUserEnabledMkldnn(false);
}

WithoutOneDnn::~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before_); }

}  // namespace sluice
