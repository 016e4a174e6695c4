#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/range.h"
#include "base/zeroed_buffer.h"
#include "model/deep_gradient_options.h"

namespace sluice {

// What one sender holds back, and the choice of what it sends.
class DeepGradient {
 public:
  // The layers tile the parameters in ascending order; the state is indexed like them.
  DeepGradient(const DeepGradientOptions& options, const DeepGradientSender& sender,
               std::vector<Range> layers);

  // Takes in a chunk of the sender's gradient, and returns what is to be sent of it as a sparse
  // vector. The spans are of the whole model; in the gradients all layers that the chunk touches
  // are final, and stay as they are until the last chunk of each was taken in.
  //
  // Clipping is the paper's: of the gradient's share in the mean over all workers, to the threshold
  // over sqrt(senders), by layer. It comes before the decay, which is no part of the gradient. A
  // layer whose norm is not finite is left as it is.
  std::vector<std::byte> encode(std::span<const float> gradients, std::span<const float> parameters,
                                const Range& chunk, Iteration iteration);
  // The same in two steps. Several threads may take the second at a time, each for its own chunk,
  // but only one the first: the factors, by layer that the chunk touches.
  std::vector<float> clip_factors(std::span<const float> gradients, const Range& chunk,
                                  Iteration iteration);
  std::vector<std::byte> encode(std::span<const float> gradients, std::span<const float> parameters,
                                const Range& chunk, Iteration iteration,
                                std::span<const float> clips);

  // Produced and not yet sent.
  std::span<float> residual() const { return residual_.values(); }
  std::span<float> velocity() const { return velocity_.values(); }

 private:
  // The same for all chunks of a layer; the first of an iteration computes it.
  struct Clip {
    Iteration iteration = 0;
    float factor = 1;
  };

  std::span<const Range> layers_in(const Range& chunk) const;
  float clip_factor(std::size_t layer, std::span<const float> gradients, Iteration iteration);
  void take_in(std::span<const float> gradients, std::span<const float> parameters,
               const Range& range, float clip);

  DeepGradientOptions options_;
  float momentum_;
  float decay_;  // of all workers of the group
  double clip_norm_;
  std::vector<Range> layers_;
  std::vector<Clip> clips_;  // by layer
  ZeroedBuffer velocity_;
  ZeroedBuffer residual_;
};

}  // namespace sluice
