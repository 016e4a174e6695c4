#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/finite.h"
#include "base/id.h"
#include "base/result.h"
#include "base/units.h"
#include "base/zeroed_buffer.h"
#include "formats/safetensors.h"
#include "learners/layer_turns.h"
#include "model/layer.h"
#include "model/strategy.h"
#include "optimizers/update_rule.h"

namespace sluice {

// What an accelerator did for a layer, as times before now.
struct DeviceSpan {
  enum class Task : std::uint8_t { kForward, kBackward, kWait, kCopyIn, kCopyOut };

  LayerId layer;
  Task task = Task::kForward;
  Duration begin_ago{0};
  Duration end_ago{0};
};

// How a training step talks to the protocol. Calls never overlap. They come from the thread that
// runs the step, or from another one while that thread waits.
class StepHooks {
 public:
  virtual ~StepHooks() = default;

  // Called before the forward pass first reads this layer's parameters. Returns once they are in;
  // true if they already were before the call.
  virtual bool before_layer(LayerId layer) = 0;
  // Likewise. While it waits it may call `work`, on this thread, when other layers have been
  // released.
  virtual bool before_layer_meanwhile(LayerId layer, const std::function<void()>& /*work*/) {
    return before_layer(layer);
  }
  // True if before_layer() would return at once.
  virtual bool released(LayerId /*layer*/) { return false; }
  // The loss is known: the backward pass begins.
  virtual void forward_done() = 0;
  // This layer's gradient is final and stays untouched until the layer's next backward pass.
  virtual void gradient_ready(LayerId layer) = 0;
  // Called once for each step if times_itself(), in their order, at the end of this step or of a
  // later one, or in settle().
  virtual void device_done(Iteration /*iteration*/, std::span<const DeviceSpan> /*spans*/) {}
  // Likewise, for a gradient of which gradient_is_finite() could not tell in time.
  virtual void found_nonfinite(Iteration /*iteration*/, LayerId /*layer*/) {}
};

// The steps of a phase for a learner that takes them itself: see Learner::drive().
class OpenSteps : public StepHooks {
 public:
  // All layers of the current step have been reported. The hooks are those of the next step.
  virtual void end_step(std::optional<double> loss) = 0;
};

// For steps without synchronisation.
class NoHooks final : public StepHooks {
 public:
  bool before_layer(LayerId /*layer*/) override { return true; }
  void forward_done() override {}
  void gradient_ready(LayerId /*layer*/) override {}
};

struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy = {};  // share of correct predictions, 0 ... 1; none: no classes
};

// One worker's replica of the model with its share of the data. All learners of a run start with
// equal parameters and have the same layers.
class Learner {
 public:
  virtual ~Learner() = default;

  // In the order in which the forward pass first uses them.
  virtual const std::vector<Layer>& layers() const = 0;
  virtual std::span<float> parameters() = 0;
  // The mean over the local batch, times its weight if batches differ in size; overwritten by every
  // step. After gradients_into() that buffer.
  virtual std::span<float> gradients() = 0;
  // A zeroed buffer as long as gradients(), in memory that suits the learner.
  virtual std::shared_ptr<float[]> further_gradients() {
    auto zeros = std::make_shared<const ZeroedBuffer>(gradients().size());
    return {zeros, zeros->values().data()};
  }
  // Later steps write their gradients to this buffer, which must outlive them. It is one from
  // further_gradients(), or the first gradients().
  virtual void gradients_into(std::span<float> buffer) = 0;

  // Runs forward and backward on this worker's batch, which depends on the iteration alone. Calls
  // before_layer() and gradient_ready() exactly once per layer. Returns the loss, or nothing if the
  // learner does not learn.
  virtual std::optional<double> step(Iteration iteration, StepHooks& hooks) = 0;
  // True if the learner calls for its steps itself, in drive(), and step() is not called: for a
  // phase that ends when the learner says so.
  virtual bool drives() const { return false; }
  // Returns when the phase is to end, between two steps. All workers must end it after the same
  // step.
  virtual void drive(OpenSteps& /*steps*/) { fail_check("this learner has its steps opened"); }
  // Whether all values of this layer's gradient are finite, from gradient_ready() on until the step
  // ends. An accelerator knows without a look at host memory; if it does not know yet, it says yes,
  // and calls found_nonfinite() later.
  virtual bool gradient_is_finite(LayerId layer) {
    const Range range = layers()[layer.index()].range;
    return all_finite(gradients().subspan(static_cast<std::size_t>(range.begin),
                                          static_cast<std::size_t>(range.size())));
  }

  // Whether it can update its own parameters, because they are on an accelerator.
  virtual bool can_update() const { return false; }
  // Leaves all further updates to the learner. When before_layer() of iteration t returns,
  // gradients() has the sum over all workers of the layer's gradients of t-1, and the learner
  // applies it before it reads the layer. parameters() is out of date until settle().
  virtual void update_with(const UpdateRule& /*rule*/, const BatchShare& /*share*/) {
    fail_check("this learner leaves updates to others");
  }
  // Leaves packing to the learner; unless the codec is sparse, after update_with(). When
  // gradient_ready() is called for the last layer of a chunk, the chunk's memory in gradients()
  // begins with the code of its gradient, which fits. When before_layer() returns, it begins with
  // the code of the sum, or, with a sparse codec, with a patch: what has changed in parameters(),
  // or kAllChanged. With codec powersgd see find_right_factors().
  virtual void pack_with(const Strategy& /*strategy*/, const DeepGradientSender& /*sender*/,
                         const ChunkMap& /*chunks*/) {
    fail_check("this learner leaves packing to others");
  }
  // After pack_with() a codec powersgd. What is no factored matrix stays as it is. When
  // gradient_ready() is called for the layer of a matrix, the left factor stands at the beginning
  // of its memory in gradients(). Then this is called with that matrix, among others, when the sum
  // of the left factors has taken its place, with orthonormal columns; when it returns, the right
  // factor stands behind it. When before_layer() returns, the sum of those does, and behind that
  // the same with orthonormal columns, with which the next iteration begins.
  // Comes from another thread than that of the steps, meanwhile, and one call at a time.
  virtual void find_right_factors(std::span<const Range> /*matrices*/) {
    fail_check("this learner leaves packing to others");
  }
  // Leaves all local steps to the learner. When gradient_ready() of a layer is called in iteration
  // t, the learner has updated it with its own gradient, and parameters() has the result where the
  // turns meet at t+1; gradients() is free for others. When before_layer() of t+1 returns, the
  // learner takes over parameters() where an exchange has ended at t+1. The rest of parameters() is
  // out of date until settle().
  virtual void step_locally(const UpdateRule& /*rule*/, LayerTurns /*turns*/) {
    fail_check("this learner leaves local steps to others");
  }
  // Applies the sums that are due, of all layers: parameters() is that of this iteration. From the
  // thread of the steps, when all layers of the iteration have been released.
  virtual void settle(Iteration /*iteration*/) {}

  // Uses the held-out data and the current parameters; nothing if there is no such data.
  virtual std::optional<Evaluation> evaluate() = 0;

  // Replaces what training has learned of the data besides parameters, the statistics of batch
  // normalisation, by what some training batches show with the current parameters. For parameters
  // that come from elsewhere.
  virtual void estimate_statistics() {}

  // What later steps depend on besides parameters, gradients and the iteration: the statistics of
  // batch normalisation, and what the optimiser remembers if updates are left to the learner. Only
  // between two phases. recall() takes that of another learner, after update_with().
  virtual std::vector<TensorCopy> remembered() { return {}; }
  virtual Result<void> recall(std::span<const StoredTensor> state) {
    return state.empty() ? Result<void>() : Error("this model has no state besides parameters");
  }

  // True if the step only queues work on an accelerator and reports the times at its end. Otherwise
  // the times between calls of the hooks are the times of the layers.
  virtual bool times_itself() const { return false; }

  // Writes the current model into this folder, for other programs.
  virtual Result<void> save(const std::filesystem::path& /*folder*/) {
    return Error("there is no model to save");
  }
};

using LearnerFactory = std::function<std::unique_ptr<Learner>(std::size_t rank)>;

}  // namespace sluice
