#pragma once

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

// Stochastic gradient descent with momentum and weight decay:
//   g = mean gradient + decay * w,   v = momentum * v + g,   w = w - rate * v
struct UpdateRule {
  RateSchedule rate;
  float momentum = 0.9F;
  float weight_decay = 0;

  // Makes the parameters of this iteration. The mean is the sum of the sources, taken in their
  // order, over `contributors`. All spans have the length of `parameters`.
  void apply(std::span<float> parameters, std::span<float> velocity,
             std::span<const std::span<const float>> sources, float contributors,
             Iteration iteration) const;
  // The same where a sparse gradient has an entry, and nothing elsewhere: neither momentum nor
  // decay touches what no worker sent.
  void apply_sparse(std::span<float> parameters, std::span<float> velocity, const SparseView& sum,
                    float contributors, Iteration iteration) const;
};

}  // namespace sluice
