#pragma once

#include <span>
#include <vector>

#include "base/id.h"

namespace sluice {

// Stochastic gradient descent with momentum and weight decay:
//   g = mean gradient + decay * w,   v = momentum * v + g,   w = w - rate * v
struct UpdateRule {
  float rate = 0.05F;
  float momentum = 0.9F;
  float weight_decay = 0;

  // The mean is the sum of the sources, taken in their order, over `contributors`. All spans have
  // the length of `parameters`.
  void apply(std::span<float> parameters, std::span<float> velocity,
             std::span<const std::span<const float>> sources, float contributors) const;
};

}  // namespace sluice
