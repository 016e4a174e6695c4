#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learners/learner.h"
#include "protocol/event.h"
#include "state/training_state.h"

namespace sluice::testing {

// Memory that nobody may read.
inline void poison(std::span<float> memory) {
  std::fill(memory.begin(), memory.end(), std::numeric_limits<float>::quiet_NaN());
}

// A worker of a ShuffledWorld: computes one layer at a time, as soon as its parameters are
// released, and posts what it has computed. The gradient of a layer is NaN until it is reported.
// Throws if the parameters of a layer are NaN or change while the worker computes with them.
class ShuffledWorker {
 public:
  ShuffledWorker(std::size_t rank, Learner& learner, TrainingState& state)
      : node_(rank), learner_(learner), state_(state) {
    start();
  }

  // Begins, or goes on after its end.
  void start() {
    released_.assign(learner_.layers().size(), iteration_ - 1);
    posted_.emplace_back(Started{node_, iteration_});
    ended_ = false;
  }
  // Takes the place of one that was lost: begins with this iteration.
  void begin_anew(Iteration iteration) {
    iteration_ = iteration;
    forward_ = backward_ = 0;
    posted_.clear();
  }
  // Ends before this iteration once it has its parameters.
  void end_at(Iteration iteration) {
    const auto has = [&](Iteration released) { return released == iteration; };
    if (iteration_ == iteration && !ended_ && std::ranges::all_of(released_, has)) {
      posted_.emplace_back(Ended{node_, iteration_});
      ended_ = true;
    }
  }

  // Backward passes that the worker has finished.
  Iteration iteration() const { return iteration_; }
  void release(LayerId layer, Iteration iteration) {
    Iteration& released = released_[layer.index()];
    check(iteration == released + 1, "a layer is released once per iteration, in order");
    released = iteration;
  }

  bool is_in_backward() const { return backward_ > 0; }
  bool can_go_forward() const { return !is_in_backward() && released_[forward_] == iteration_; }

  void run_forward() {
    const Layer& layer = learner_.layers()[forward_];
    seen_.resize(learner_.parameters().size());
    const auto parameters = part(learner_.parameters(), layer.range);
    check(std::all_of(parameters.begin(), parameters.end(), [](float p) { return !std::isnan(p); }),
          "a released layer has its parameters");
    std::copy(parameters.begin(), parameters.end(), part(seen_, layer.range).begin());
    if (++forward_ == released_.size()) {
      forward_ = 0;
      backward_ = released_.size();
      compute_gradients();
    }
  }

  void run_backward() {
    const LayerId layer(--backward_);
    verify_unchanged(layer);
    const Range range = learner_.layers()[layer.index()].range;
    const auto made = part(gradients_, range);
    std::copy(made.begin(), made.end(), part(gradient_buffer(), range).begin());
    posted_.emplace_back(GradientReady{node_, layer, iteration_});
    if (backward_ == 0) {
      posted_.emplace_back(BackwardDone{node_, iteration_++});
    }
  }

  // Events for its host, which handles them in order.
  bool has_posted() const { return !posted_.empty(); }
  Event take_posted() {
    Event event = std::move(posted_.front());
    posted_.pop_front();
    return event;
  }

 private:
  static std::span<float> part(std::span<float> values, const Range& range) {
    return values.subspan(static_cast<std::size_t>(range.begin),
                          static_cast<std::size_t>(range.size()));
  }

  // From here on autograd may write to any gradient.
  void compute_gradients() {
    for (std::size_t l = 0; l < released_.size(); ++l) {
      verify_unchanged(LayerId(l));
    }
    state_.slots(node_).use(iteration_);
    NoHooks hooks;
    learner_.step(iteration_, hooks);
    const auto buffer = gradient_buffer();
    gradients_.assign(buffer.begin(), buffer.end());
    poison(buffer);
  }

  std::span<float> gradient_buffer() {
    const auto& slots = state_.slots(node_).all();
    return slots[static_cast<std::size_t>(iteration_) % slots.size()];
  }

  void verify_unchanged(LayerId layer) {
    const Range range = learner_.layers()[layer.index()].range;
    check(std::ranges::equal(part(learner_.parameters(), range), part(seen_, range)),
          "parameters stay as they are from the forward pass to the gradient");
  }

  NodeId node_;
  Learner& learner_;
  TrainingState& state_;
  std::vector<Iteration> released_;  // by layer
  Iteration iteration_ = 0;
  std::size_t forward_ = 0;       // layers done in this iteration's forward pass
  std::size_t backward_ = 0;      // layers whose gradients are not reported yet
  std::vector<float> seen_;       // the parameters as the forward pass read them
  std::vector<float> gradients_;  // of this iteration, written layer by layer
  bool ended_ = false;
  std::deque<Event> posted_;
};

}  // namespace sluice::testing
