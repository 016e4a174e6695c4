#pragma once

#include <ATen/core/Tensor.h>

#include "base/range.h"
#include "optimizers/update_rule.h"

namespace sluice {

// Updates parameters where they are. Everything is queued on the current stream.
class DeviceUpdate {
 public:
  DeviceUpdate(UpdateRule rule, const BatchShare& share, at::Tensor parameters);

  // Produces the parameters of this iteration in the range, from the sum of the gradients of
  // `share`. As UpdateRule::apply(), but for the last bits.
  void apply(const Range& range, const at::Tensor& sum, Iteration iteration) const;

 private:
  UpdateRule rule_;
  BatchShare share_;
  at::Tensor parameters_;
  at::Tensor velocity_;
};

}  // namespace sluice
