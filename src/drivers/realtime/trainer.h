#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "drivers/realtime/gate.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/phase.h"
#include "learners/learner.h"

namespace sluice {

// One worker's training loop, tied to its host: the forward pass waits at the gate, the backward
// pass reports each gradient. All calls come from the worker's own thread.
class Trainer final : private OpenSteps {
 public:
  struct World {
    NodeId worker;
    Gate& gate;
    Mailbox& host;
    std::mutex& leading;                              // held while the phase's callbacks run
    std::function<bool(Iteration iteration)> begins;  // false: the run ends before it
    std::function<void(Iteration iteration, std::optional<double> loss)> stepped;
  };

  Trainer(const Phase& phase, World world)
      : phase_(phase), world_(std::move(world)), learner_(phase.state.learner(world_.worker)) {}

  // The host has the worker's Started. Returns when the worker has the parameters after its last
  // iteration, and its host knows.
  void run();

 private:
  bool before_layer(LayerId layer) override { return before_layer_meanwhile(layer, {}); }
  bool before_layer_meanwhile(LayerId layer, const std::function<void()>& work) override;
  bool released(LayerId layer) override { return world_.gate.released(layer, iteration_); }
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  void device_done(Iteration iteration, std::span<const DeviceSpan> spans) override;
  void found_nonfinite(Iteration iteration, LayerId layer) override;
  void end_step(std::optional<double> loss) override;
  void run_open();
  void meet_boundary();
  std::optional<double> step();
  void check_gradient(LayerId layer);
  void end_forward_span();
  // Does nothing for a learner that times itself, which reports later.
  void computed(LayerId layer, Pass pass, Time end);

  const Phase& phase_;
  World world_;
  Learner& learner_;
  Iteration iteration_ = 0;
  std::optional<LayerId> in_forward_;  // the layer whose forward pass is running
  Time since_{0};                      // when the current span began
};

}  // namespace sluice
