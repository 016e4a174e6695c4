#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "codecs/sparse.h"

namespace sluice {

// A learning rate that warms up gradually and later drops in steps.
struct RateSchedule {
  float base = 0.05F;
  Iteration warmup = 0;               // iterations over which it rises to the base
  float warmup_from = 0;              // share of the base with which it begins to rise
  std::vector<Iteration> drops = {};  // iterations at which it drops to a tenth

  // For the update that produces the parameters of this iteration; the first is 1.
  float at(Iteration iteration) const;
};

// An update has the gradients of `contributors` out of the `workers` of the joined batch.
struct BatchShare {
  std::uint32_t contributors = 1;
  std::uint32_t workers = 1;

  static BatchShare all(std::size_t workers) {
    return {static_cast<std::uint32_t>(workers), static_cast<std::uint32_t>(workers)};
  }
  // The factor for the sum of the contributors' gradients.
  float scale() const { return 1.0F / static_cast<float>(workers); }
  float decay(float whole) const {
    return whole * (static_cast<float>(contributors) / static_cast<float>(workers));
  }
};

// Stochastic gradient descent with momentum and weight decay:
//   g = mean gradient + decay * w,   v = momentum * v + g,   w = w - rate * v
// Weight decay is that of synchronous descent on the joined batch: the gradients of all workers in
// one iteration cause one decay, no matter how many updates they are spread over. An update with
// the gradients of c out of n workers applies c / n of it.
struct UpdateRule {
  RateSchedule rate;
  float momentum = 0.9F;
  float weight_decay = 0;

  // Produces the parameters of this iteration. The mean is the sum of the sources, in their order,
  // divided by all workers of the joined batch. All spans have the length of `parameters`.
  void apply(std::span<float> parameters, std::span<float> velocity,
             std::span<const std::span<const float>> sources, const BatchShare& share,
             Iteration iteration) const;
  // The same for the entries of a sparse gradient only: neither momentum nor decay touches a
  // parameter that no worker sent.
  void apply_sparse(std::span<float> parameters, std::span<float> velocity, const SparseView& sum,
                    const BatchShare& share, Iteration iteration) const;
};

}  // namespace sluice
