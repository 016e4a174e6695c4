#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/id.h"
#include "codecs/sparse.h"
#include "optimizers/optimizer.h"
#include "optimizers/rate_schedule.h"

namespace sluice {

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

// How gradients become parameters. By default stochastic gradient descent with momentum and weight
// decay:
//   g = mean gradient + decay * w,   v = momentum * v + g,   w = w - rate * v
// Weight decay is that of synchronous descent on the joined batch: the gradients of all workers in
// one iteration cause one decay, no matter how many updates they are spread over. An update with
// the gradients of c out of n workers applies c / n of it. Only an optimiser that is linear in the
// gradient allows that: n updates of the others with a share of the gradients are not one update
// (nodes/validate_update.h refuses it).
//
// The count of steps that Adam and others need is the iteration, so the state consists of buffers
// only.
struct UpdateRule {
  RateSchedule rate = {};
  float momentum = 0.9F;
  float weight_decay = 0;
  Optimizer optimizer = Optimizer::kSgd;
  OptimizerOptions options = {};
  float clip_value = 0;  // limit for each value of the mean gradient; 0: none
  float clip_norm = 0;   // limit for the norm of the whole mean gradient; 0: none

  const OptimizerTraits& traits() const { return traits_of(optimizer); }
  // Neither other ranges nor their values matter to the update of a range.
  bool elementwise() const { return !traits().whole_layers && clip_norm == 0; }
  // What it remembers of each parameter: the names of torch.optim.
  StateNames state() const { return traits().state(*this); }

  // Produces the parameters of this iteration. The mean is the sum of the sources, in their order,
  // divided by all workers of the joined batch, then multiplied by `factor`. All spans have the
  // length of `parameters`, which is a layer if the optimiser needs whole ones.
  void apply(std::span<float> parameters, const StateParts& state,
             std::span<const std::span<const float>> sources, const BatchShare& share,
             Iteration iteration, float factor = 1) const;
  // The same for the entries of a sparse gradient only, by SGD: neither momentum nor decay touches
  // a parameter that no worker sent.
  void apply_sparse(std::span<float> parameters, const StateParts& state, const SparseView& sum,
                    const BatchShare& share, Iteration iteration) const;
  // The factor that limits a mean gradient of this norm, as torch.nn.utils.clip_grad_norm_ has it.
  float clip_factor(double norm) const;
};

// One update, for the arithmetic of an optimiser.
struct UpdateStep {
  const UpdateRule& rule;
  float rate;
  float scale;  // of the sum of the gradients
  float decay;
  Iteration iteration;
};

// In an order that depends on the length alone.
double sum_of_squares(std::span<const float> values);

}  // namespace sluice
