#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "model/layer.h"

namespace sluice {

// How a training step talks to the protocol. Called from the thread that runs the step.
class StepHooks {
 public:
  virtual ~StepHooks() = default;

  // Before the forward pass first reads this layer's parameters; returns when they are in, and
  // whether they had been before the call.
  virtual bool before_layer(LayerId layer) = 0;
  // The loss is known: the backward pass begins.
  virtual void forward_done() = 0;
  // This layer's gradient is final and stays untouched until the layer's next backward pass.
  virtual void gradient_ready(LayerId layer) = 0;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // share of right answers, 0 ... 1
};

// One worker's replica of the model with its share of the data: the contract of compute. All
// learners of a run start with equal parameters and the same layers.
class Learner {
 public:
  virtual ~Learner() = default;

  // In the order of first use by the forward pass.
  virtual const std::vector<Layer>& layers() const = 0;
  virtual std::span<float> parameters() = 0;
  // The mean over the local batch; overwritten by every step.
  virtual std::span<float> gradients() = 0;
  // The steps to come write their gradients here; the buffer is as long as gradients() and
  // outlives them.
  virtual void gradients_into(std::span<float> buffer) = 0;

  // Forward and backward on this worker's batch of the iteration, which is a function of the
  // iteration alone. Every layer is announced to both hooks exactly once. Returns the loss, NaN if
  // nothing is learnt.
  virtual double step(Iteration iteration, StepHooks& hooks) = 0;
  // On the held-out data, with the parameters as they are now; nothing if there is no such data.
  virtual std::optional<Evaluation> evaluate() = 0;
};

using LearnerFactory = std::function<std::unique_ptr<Learner>(std::size_t rank)>;

}  // namespace sluice
