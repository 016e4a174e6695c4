#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// The five parts of Deep Gradient Compression (Lin et al., 2018), each with its switch. Without any
// of them the largest values of each gradient are sent and the others are lost.
struct DeepGradientOptions {
  bool accumulation = true;         // what is not sent stays and grows until it is
  bool momentum_correction = true;  // velocities are summed, not gradients
  bool clipping = true;             // of each worker's own gradient
  bool factor_masking = true;       // what has been sent starts again without velocity
  bool warm_up = true;              // of the sparsity, over the first epochs

  double sparsity = 0.999;  // share of the values that is held back
  float momentum = 0.9F;    // with the correction on, the update rule must have none of its own
  float clip_norm = 5;      // for the sum over all workers; each one takes 1/sqrt(workers) of it
  std::size_t workers = 1;

  double sparsity_at(std::int64_t epoch) const;
  // How many of `count` values are sent; at least one, if there is one.
  std::size_t entries(std::size_t count, std::int64_t epoch) const;
};

// What one worker holds back, and the choice of what it sends.
class DeepGradient {
 public:
  // For a model of so many parameters; its state is indexed like them.
  DeepGradient(const DeepGradientOptions& options, std::size_t parameters);

  // Takes in the gradient of a chunk whose first parameter is `begin`, and returns what is to be
  // sent of it as a sparse vector. The norm that is clipped is that of the chunk, as the first
  // chunk leaves before the whole gradient is known; one that is not finite is left as it is.
  std::vector<std::byte> encode(std::span<const float> gradient, std::size_t begin,
                                std::int64_t epoch);

  // Produced and not yet sent.
  std::span<const float> residual() const { return residual_; }

 private:
  float clip_factor(std::span<const float> gradient) const;
  void take_in(std::span<const float> gradient, std::span<float> velocity,
               std::span<float> residual) const;

  DeepGradientOptions options_;
  std::vector<float> velocity_;
  std::vector<float> residual_;
};

}  // namespace sluice
