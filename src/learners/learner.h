#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/units.h"
#include "base/zeroed_buffer.h"
#include "model/layer.h"

namespace sluice {

// What an accelerator did for a layer, told when the step is over: so long before that moment.
struct DeviceSpan {
  enum class Task : std::uint8_t { kForward, kBackward, kWait, kCopyIn, kCopyOut };

  LayerId layer;
  Task task = Task::kForward;
  Duration begin_ago{0};
  Duration end_ago{0};
};

// How a training step talks to the protocol. Calls come one after another, from the thread that
// runs the step or while it waits for them.
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
  // At the end of a step of a learner that times itself.
  virtual void device_done(std::span<const DeviceSpan> /*spans*/) {}
};

// For steps that synchronise with nobody.
class NoHooks final : public StepHooks {
 public:
  bool before_layer(LayerId /*layer*/) override { return true; }
  void forward_done() override {}
  void gradient_ready(LayerId /*layer*/) override {}
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
  // Zeros, as many as there are gradients, where the learner can put gradients well.
  virtual std::shared_ptr<float[]> further_gradients() {
    auto zeros = std::make_shared<const ZeroedBuffer>(gradients().size());
    return {zeros, zeros->values().data()};
  }
  // The steps to come write their gradients here: a buffer as by further_gradients(), or that of
  // gradients() at first. It outlives them.
  virtual void gradients_into(std::span<float> buffer) = 0;

  // Forward and backward on this worker's batch of the iteration, which is a function of the
  // iteration alone. Every layer is announced to both hooks exactly once. Returns the loss, none
  // if nothing is learnt.
  virtual std::optional<double> step(Iteration iteration, StepHooks& hooks) = 0;
  // On the held-out data, with the parameters as they are now; nothing if there is no such data.
  virtual std::optional<Evaluation> evaluate() = 0;

  // Whether the step only hands work to an accelerator, which tells afterwards when it was done;
  // else the time between calls of the hooks is the time of the layers.
  virtual bool times_itself() const { return false; }

  // Writes the model as it is now into this folder, for other programs.
  virtual Result<void> save(const std::filesystem::path& /*folder*/) {
    return Error("there is no model to save");
  }
};

using LearnerFactory = std::function<std::unique_ptr<Learner>(std::size_t rank)>;

}  // namespace sluice
