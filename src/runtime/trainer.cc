#include "runtime/trainer.h"

namespace sluice {

void Trainer::run() {
  world_.host.post(Started{world_.worker});
  for (iteration_ = stretch_.first; iteration_ < stretch_.last; ++iteration_) {
    meet_boundary();
    world_.stepped(iteration_, step());
  }
  world_.gate.wait_for_all(stretch_.last);
}

void Trainer::meet_boundary() {
  const bool is_one =
      iteration_ > 0 && stretch_.boundary_every > 0 && iteration_ % stretch_.boundary_every == 0;
  if (is_one && world_.worker.index() == 0 && stretch_.on_boundary) {
    world_.gate.wait_for_all(iteration_);
    const std::lock_guard lock(world_.speaking);
    stretch_.on_boundary(iteration_);
  }
}

double Trainer::step() {
  stretch_.state.slots(world_.worker).use(iteration_);
  const double loss = learner_.step(iteration_, *this);
  world_.host.post(BackwardDone{world_.worker, iteration_});
  return loss;
}

bool Trainer::before_layer(LayerId layer) {
  end_forward_span();
  const Time begin = stretch_.clock.now();
  const bool at_once = world_.gate.wait(layer, iteration_);
  since_ = stretch_.clock.now();
  if (!at_once && stretch_.observer != nullptr) {
    stretch_.observer->waited(world_.worker, layer, iteration_, begin, since_);
  }
  in_forward_ = layer;
  return at_once;
}

void Trainer::forward_done() { end_forward_span(); }

void Trainer::gradient_ready(LayerId layer) {
  const Time now = stretch_.clock.now();
  if (stretch_.observer != nullptr) {
    stretch_.observer->computed(world_.worker, layer, iteration_, Phase::kBackward, since_, now);
  }
  since_ = now;
  world_.host.post(GradientReady{world_.worker, layer, iteration_});
}

void Trainer::end_forward_span() {
  if (!in_forward_.has_value()) {
    return;
  }
  const Time now = stretch_.clock.now();
  if (stretch_.observer != nullptr) {
    stretch_.observer->computed(world_.worker, *in_forward_, iteration_, Phase::kForward, since_,
                                now);
  }
  since_ = now;
  in_forward_.reset();
}

}  // namespace sluice
