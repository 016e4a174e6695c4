#include "torch/device_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <utility>

namespace sluice {

DeviceUpdate::DeviceUpdate(UpdateRule rule, const BatchShare& share, at::Tensor parameters)
    : rule_(std::move(rule)),
      share_(share),
      parameters_(std::move(parameters)),
      velocity_(at::zeros_like(parameters_)) {}

void DeviceUpdate::apply(const Range& range, const at::Tensor& sum, Iteration iteration) const {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  at::Tensor w = parameters_.narrow(0, range.begin, range.size());
  at::Tensor v = velocity_.narrow(0, range.begin, range.size());
  v.mul_(rule_.momentum).add_(sum, share_.scale());
  if (const float decay = share_.decay(rule_.weight_decay); decay != 0) {
    v.add_(w, decay);
  }
  w.sub_(v, rule_.rate.at(iteration));
}

}  // namespace sluice
