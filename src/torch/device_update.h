#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "base/range.h"
#include "optimizers/update_rule.h"

namespace sluice {

// Updates parameters where they are. Everything is queued on the current stream.
class DeviceUpdate {
 public:
  // The rule must be elementwise().
  DeviceUpdate(UpdateRule rule, const BatchShare& share, at::Tensor parameters);

  // Produces the parameters of this iteration in the range, from the sum of the gradients of
  // `share`, which is used up. As UpdateRule::apply(), but for the last bits.
  void apply(const Range& range, const at::Tensor& sum, Iteration iteration) const;

  // Whether it limits each value of a gradient.
  bool clips() const { return rule_.clip_value > 0; }
  // What the optimiser remembers.
  const std::vector<at::Tensor>& state() const { return state_; }

 private:
  UpdateRule rule_;
  BatchShare share_;
  at::Tensor parameters_;
  std::vector<at::Tensor> state_;  // the buffers of rule_.state()
};

}  // namespace sluice
