#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "compute/learner.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"
#include "runtime/stretch.h"

namespace sluice {

// One worker's training loop, tied to its host: the forward pass waits at the gate, the backward
// pass reports each gradient. All calls come from the worker's own thread.
class Trainer final : private StepHooks {
 public:
  struct World {
    NodeId worker;
    Gate& gate;
    Mailbox& host;
    std::mutex& speaking;  // held while the stretch's callbacks run
    std::function<void(Iteration iteration, double loss)> stepped;
  };

  Trainer(const Stretch& stretch, World world)
      : stretch_(stretch),
        world_(std::move(world)),
        learner_(stretch.state.learner(world_.worker)) {}

  // Returns when the worker has the parameters of the last iteration.
  void run();

 private:
  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  void device_done(std::span<const DeviceSpan> spans) override;
  void meet_boundary();
  double step();
  void end_forward_span();
  // Nothing of a learner that times itself, which does so later.
  void computed(LayerId layer, Phase phase, Time end);

  const Stretch& stretch_;
  World world_;
  Learner& learner_;
  Iteration iteration_ = 0;
  std::optional<LayerId> in_forward_;  // the layer whose forward pass is under way
  Time since_{0};                      // when the span under way began
};

}  // namespace sluice
