#pragma once

#include <cstddef>
#include <cstdint>

#include "base/id.h"

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
  // Of a layer's mean gradient over all workers; each of N senders may have 1/sqrt(N) of it.
  double clip_norm = 5;
  Iteration epoch_iterations = 0;  // 0: the warm-up is over

  // Of the gradient that goes into the parameters of this iteration; the first is 1.
  double sparsity_at(Iteration iteration) const;
  // How many of `count` values are sent; at least one, if there is one.
  std::size_t entries(std::size_t count, Iteration iteration) const;
};

// Whose gradients are compressed: one of `senders` sends the sum of those of `group` workers.
struct DeepGradientSender {
  std::size_t senders = 1;
  std::size_t group = 1;
  float momentum = 0;      // applied here and not by the update rule, if the correction is on
  float weight_decay = 0;  // likewise always; that of one worker

  // Of all workers of the group.
  float decay() const { return weight_decay * static_cast<float>(group); }
  // Of the sum of the group: its share in the mean of all may have this norm at most.
  double clip_norm(const DeepGradientOptions& options) const;
};

}  // namespace sluice
