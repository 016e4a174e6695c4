#include "drivers/virtual/virtual_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/finite.h"

namespace sluice {
namespace {

// Looks for values that are not finite while they are still in the cache.
class FiniteCheck final : public StepHooks {
 public:
  FiniteCheck(const std::vector<Layer>& layers, std::span<const float> gradients,
              std::function<void(LayerId layer)> found)
      : layers_(layers), gradients_(gradients), found_(std::move(found)) {}

  bool before_layer(LayerId /*layer*/) override { return true; }
  void forward_done() override {}
  void gradient_ready(LayerId layer) override {
    const Range range = layers_[layer.index()].range;
    if (!all_finite(gradients_.subspan(static_cast<std::size_t>(range.begin),
                                       static_cast<std::size_t>(range.size())))) {
      found_(layer);
    }
  }

 private:
  const std::vector<Layer>& layers_;
  std::span<const float> gradients_;
  std::function<void(LayerId layer)> found_;
};

}  // namespace

VirtualSteps::VirtualSteps(const VirtualNumbers* numbers, Numbers& values,
                           std::span<VirtualWorker> workers)
    : numbers_(numbers),
      values_(values),
      workers_(workers),
      steps_(numbers == nullptr ? 0 : workers.size()) {
  if (numbers_ != nullptr && numbers_->computing != nullptr) {
    computing_ = numbers_->computing;
  }
}

VirtualSteps::~VirtualSteps() {
  for (std::size_t w = 0; w < steps_.size(); ++w) {
    try {
      if (steps_[w].begun) {
        computing_->finish(w);
      }
    } catch (...) {
      // The run has failed already, and that is what gets reported.
    }
  }
}

void VirtualSteps::note(NodeId worker) {
  if (numbers_ == nullptr) {
    return;
  }
  const VirtualWorker& of = workers_[worker.index()];
  Iteration& noted = steps_[worker.index()].noted;
  if (of.has_all_parameters() && noted < of.iteration()) {
    noted = of.iteration();
    noted_.push_back(worker);
  }
}

void VirtualSteps::begin_noted(Time now) {
  end_if_interrupted();
  for (const NodeId worker : std::exchange(noted_, {})) {
    const VirtualWorker& of = workers_[worker.index()];
    const Iteration iteration = of.iteration();
    if (of.finished()) {
      continue;
    }
    const bool at_boundary =
        iteration > 0 && numbers_->boundary_every > 0 && iteration % numbers_->boundary_every == 0;
    if (at_boundary && worker.index() == 0 && numbers_->on_boundary) {
      numbers_->on_boundary(iteration, now);
    }
    steps_[worker.index()].begun = true;
    computing_->begin(worker.index(), [this, worker, iteration] { compute(worker, iteration); });
  }
}

// May run on another thread: touches only what belongs to this worker.
void VirtualSteps::compute(NodeId worker, Iteration iteration) {
  Step& step = steps_[worker.index()];
  step.found.clear();
  const TrainingState& state = values_.state();
  Learner& learner = state.learner(worker);
  const GradientSlots& slots = state.slots(worker);
  slots.use(iteration);
  if (!numbers_->on_nonfinite) {
    NoHooks hooks;
    step.loss = learner.step(iteration, hooks);
    return;
  }
  FiniteCheck check(learner.layers(), slots.of(iteration), [&](LayerId layer) {
    step.found.push_back({worker.index(), iteration, layer});
  });
  step.loss = learner.step(iteration, check);
  if (step.loss && !std::isfinite(*step.loss)) {
    step.found.push_back({worker.index(), iteration, std::nullopt});
  }
}

void VirtualSteps::finish(NodeId worker) {
  if (numbers_ == nullptr) {
    return;
  }
  Step& step = steps_[worker.index()];
  step.begun = false;
  computing_->finish(worker.index());
  for (const NonFinite& found : step.found) {
    numbers_->on_nonfinite(found);
  }
}

void VirtualSteps::report(NodeId worker, Iteration iteration, Time now) const {
  if (numbers_ != nullptr && numbers_->on_step) {
    numbers_->on_step({worker.index(), iteration, steps_[worker.index()].loss, now});
  }
}

// All workers end after the iteration that the furthest of them is in.
void VirtualSteps::end_if_interrupted() {
  const int signal = numbers_->interrupted && !stopped_ ? numbers_->interrupted() : 0;
  if (signal == 0) {
    return;
  }
  Iteration last = 0;
  for (const VirtualWorker& worker : workers_) {
    last = std::max(last, worker.iteration() + 1);
  }
  if (last < workers_.front().iterations()) {
    stopped_ = signal;
    for (VirtualWorker& worker : workers_) {
      worker.end_at(last);
    }
  }
}

}  // namespace sluice
