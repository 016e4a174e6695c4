#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "codecs/sparse.h"

namespace sluice {

// A learning rate that rises gradually at first and falls in steps later.
struct RateSchedule {
  float base = 0.05F;
  Iteration warmup = 0;               // iterations over which it rises to the base
  std::vector<Iteration> drops = {};  // iterations from which on it is a tenth of before

  // Of the update that makes the parameters of this iteration; the first is 1.
  float at(Iteration iteration) const;
};

// What an update is made of: the gradients of `contributors` out of the `workers` that make up the
// joined batch.
struct BatchShare {
  std::uint32_t contributors = 1;
  std::uint32_t workers = 1;

  static BatchShare all(std::size_t workers) {
    return {static_cast<std::uint32_t>(workers), static_cast<std::uint32_t>(workers)};
  }
  // What a sum of the contributors' gradients is multiplied with.
  float scale() const { return 1.0F / static_cast<float>(workers); }
  float decay(float whole) const {
    return whole * (static_cast<float>(contributors) / static_cast<float>(workers));
  }
};

// Stochastic gradient descent with momentum and weight decay:
//   g = mean gradient + decay * w,   v = momentum * v + g,   w = w - rate * v
// Weight decay is that of synchronous descent on the joined batch: the gradients of all workers in
// an iteration bring one decay, however many updates they go into. An update with those of c out of
// n workers brings c / n of it.
struct UpdateRule {
  RateSchedule rate;
  float momentum = 0.9F;
  float weight_decay = 0;

  // Makes the parameters of this iteration. The mean is the sum of the sources, taken in their
  // order, over all workers of the joined batch. All spans have the length of `parameters`.
  void apply(std::span<float> parameters, std::span<float> velocity,
             std::span<const std::span<const float>> sources, const BatchShare& share,
             Iteration iteration) const;
  // The same where a sparse gradient has an entry, and nothing elsewhere: neither momentum nor
  // decay touches what no worker sent.
  void apply_sparse(std::span<float> parameters, std::span<float> velocity, const SparseView& sum,
                    const BatchShare& share, Iteration iteration) const;
};

}  // namespace sluice
