#pragma once

#include <optional>

#include "compute/gradient_slots.h"
#include "compute/learner.h"
#include "protocol/observer.h"
#include "runtime/clock.h"
#include "runtime/gate.h"
#include "runtime/mailbox.h"

namespace sluice {

// One worker's training loop, tied to its host: the forward pass waits at the gate, the backward
// pass reports each gradient. All calls come from the worker's own thread.
class Trainer final : private StepHooks {
 public:
  struct World {
    NodeId worker;
    Learner& learner;
    const GradientSlots& slots;
    Gate& gate;
    Mailbox& host;
    const Clock& clock;
    Observer* observer = nullptr;
  };

  explicit Trainer(const World& world) : world_(world) {}

  // One iteration; returns the loss.
  double step(Iteration iteration);

 private:
  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  void end_forward_span();

  World world_;
  Iteration iteration_ = 0;
  std::optional<LayerId> in_forward_;  // the layer whose forward pass is under way
  Time since_{0};                      // when the span under way began
};

}  // namespace sluice
