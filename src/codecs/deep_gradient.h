#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "model/deep_gradient_options.h"

namespace sluice {

// What one worker holds back, and the choice of what it sends.
class DeepGradient {
 public:
  // For one of `workers` that train a model of so many parameters; its state is indexed like them.
  // With the correction on, the momentum is applied here and not by the update rule.
  DeepGradient(const DeepGradientOptions& options, float momentum, std::size_t workers,
               std::size_t parameters);

  // Takes in the gradient of a chunk whose first parameter is `begin`, and returns what is to be
  // sent of it as a sparse vector. The norm that is clipped is that of the chunk, as the first
  // chunk leaves before the whole gradient is known; one that is not finite is left as it is.
  std::vector<std::byte> encode(std::span<const float> gradient, std::size_t begin,
                                Iteration iteration);

  // Produced and not yet sent.
  std::span<const float> residual() const { return residual_.values(); }

 private:
  float clip_factor(std::span<const float> gradient) const;
  void take_in(std::span<const float> gradient, std::span<float> velocity,
               std::span<float> residual) const;

  DeepGradientOptions options_;
  float momentum_;
  double clip_norm_;
  ZeroedBuffer velocity_;
  ZeroedBuffer residual_;
};

}  // namespace sluice
