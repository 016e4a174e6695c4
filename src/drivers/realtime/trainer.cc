#include "drivers/realtime/trainer.h"

#include <cmath>

namespace sluice {

void Trainer::run() {
  iteration_ = phase_.start_of(world_.worker);
  if (learner_.drives()) {
    run_open();
  } else {
    for (; world_.begins(iteration_); ++iteration_) {
      meet_boundary();
      world_.stepped(iteration_, step());
    }
  }
  world_.gate.wait_for_all(iteration_);
  learner_.settle(iteration_);
  world_.host.post(Ended{world_.worker, iteration_});
}

void Trainer::run_open() {
  world_.begins(iteration_);
  phase_.state.slots(world_.worker).use(iteration_);
  learner_.drive(*this);
}

void Trainer::end_step(std::optional<double> loss) {
  world_.host.post(BackwardDone{world_.worker, iteration_});
  world_.stepped(iteration_, loss);
  ++iteration_;
  world_.begins(iteration_);
  phase_.state.slots(world_.worker).use(iteration_);
}

void Trainer::meet_boundary() {
  const bool is_one =
      iteration_ > 0 && phase_.boundary_every > 0 && iteration_ % phase_.boundary_every == 0;
  if (is_one && world_.worker.index() == 0 && phase_.on_boundary) {
    world_.gate.wait_for_all(iteration_);
    learner_.settle(iteration_);
    const std::lock_guard lock(world_.leading);
    phase_.on_boundary(iteration_);
  }
}

std::optional<double> Trainer::step() {
  phase_.state.slots(world_.worker).use(iteration_);
  const std::optional<double> loss = learner_.step(iteration_, *this);
  if (loss && !std::isfinite(*loss) && phase_.on_nonfinite) {
    phase_.on_nonfinite({world_.worker.index(), iteration_, std::nullopt});
  }
  world_.host.post(BackwardDone{world_.worker, iteration_});
  return loss;
}

bool Trainer::before_layer_meanwhile(LayerId layer, const std::function<void()>& work) {
  end_forward_span();
  const Time begin = phase_.clock.now();
  const bool at_once = world_.gate.wait(layer, iteration_, work);
  since_ = phase_.clock.now();
  if (!at_once && phase_.observer != nullptr && !learner_.times_itself()) {
    phase_.observer->waited(world_.worker, layer, iteration_, begin, since_);
  }
  in_forward_ = layer;
  return at_once;
}

void Trainer::forward_done() { end_forward_span(); }

void Trainer::gradient_ready(LayerId layer) {
  computed(layer, Pass::kBackward, phase_.clock.now());
  check_gradient(layer);
  world_.host.post(GradientReady{world_.worker, layer, iteration_});
}

// The backward pass has just written the gradient, so it is still in the cache.
void Trainer::check_gradient(LayerId layer) {
  if (phase_.on_nonfinite && !learner_.gradient_is_finite(layer)) {
    found_nonfinite(iteration_, layer);
  }
}

void Trainer::found_nonfinite(Iteration iteration, LayerId layer) {
  if (phase_.on_nonfinite) {
    phase_.on_nonfinite({world_.worker.index(), iteration, layer});
  }
}

void Trainer::device_done(Iteration iteration, std::span<const DeviceSpan> spans) {
  if (phase_.observer == nullptr) {
    return;
  }
  Observer& observer = *phase_.observer;
  const NodeId worker = world_.worker;
  const Time now = phase_.clock.now();
  for (const DeviceSpan& span : spans) {
    const Time begin = now - span.begin_ago;
    const Time end = now - span.end_ago;
    switch (span.task) {
      case DeviceSpan::Task::kForward:
        observer.computed(worker, span.layer, iteration, Pass::kForward, begin, end);
        break;
      case DeviceSpan::Task::kBackward:
        observer.computed(worker, span.layer, iteration, Pass::kBackward, begin, end);
        break;
      case DeviceSpan::Task::kWait:
        observer.waited(worker, span.layer, iteration, begin, end);
        break;
      case DeviceSpan::Task::kCopyIn:
        observer.copied(worker, span.layer, iteration, Passage::kToDevice, begin, end);
        break;
      case DeviceSpan::Task::kCopyOut:
        observer.copied(worker, span.layer, iteration, Passage::kFromDevice, begin, end);
        break;
    }
  }
}

void Trainer::end_forward_span() {
  if (in_forward_.has_value()) {
    computed(*in_forward_, Pass::kForward, phase_.clock.now());
    in_forward_.reset();
  }
}

void Trainer::computed(LayerId layer, Pass pass, Time end) {
  if (phase_.observer != nullptr && !learner_.times_itself()) {
    phase_.observer->computed(world_.worker, layer, iteration_, pass, since_, end);
  }
  since_ = end;
}

}  // namespace sluice
