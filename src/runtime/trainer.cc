#include "runtime/trainer.h"

namespace sluice {

double Trainer::step(Iteration iteration) {
  iteration_ = iteration;
  world_.slots.use(iteration);
  const double loss = world_.learner.step(iteration, *this);
  world_.host.post(BackwardDone{world_.worker, iteration});
  return loss;
}

bool Trainer::before_layer(LayerId layer) {
  end_forward_span();
  const Time begin = world_.clock.now();
  const bool at_once = world_.gate.wait(layer, iteration_);
  since_ = world_.clock.now();
  if (!at_once && world_.observer != nullptr) {
    world_.observer->waited(world_.worker, layer, iteration_, begin, since_);
  }
  in_forward_ = layer;
  return at_once;
}

void Trainer::forward_done() { end_forward_span(); }

void Trainer::gradient_ready(LayerId layer) {
  const Time now = world_.clock.now();
  if (world_.observer != nullptr) {
    world_.observer->computed(world_.worker, layer, iteration_, Phase::kBackward, since_, now);
  }
  since_ = now;
  world_.host.post(GradientReady{world_.worker, layer, iteration_});
}

void Trainer::end_forward_span() {
  if (!in_forward_.has_value()) {
    return;
  }
  const Time now = world_.clock.now();
  if (world_.observer != nullptr) {
    world_.observer->computed(world_.worker, *in_forward_, iteration_, Phase::kForward, since_,
                              now);
  }
  since_ = now;
  in_forward_.reset();
}

}  // namespace sluice
