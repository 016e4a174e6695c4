#pragma once

#include <memory>
#include <vector>

#include "learners/learner.h"

namespace sluice {

// The gradient buffers of one learner: its own, and further ones if a worker computes while earlier
// gradients are still in use. Iteration t writes to slot t modulo their number.
class GradientSlots {
 public:
  GradientSlots(Learner& learner, std::size_t slots) : learner_(&learner) {
    all_.push_back(learner.gradients());
    for (std::size_t s = 1; s < slots; ++s) {
      further_.push_back(learner.further_gradients());
      all_.emplace_back(further_.back().get(), learner.gradients().size());
    }
  }

  GradientSlots(const GradientSlots&) = delete;
  GradientSlots& operator=(const GradientSlots&) = delete;
  // The learner lives on and must not keep a view of a further buffer.
  ~GradientSlots() { use(0); }

  const std::vector<std::span<float>>& all() const { return all_; }

  // The buffer that the step of this iteration writes to.
  std::span<float> of(Iteration iteration) const {
    return all_[static_cast<std::size_t>(iteration) % all_.size()];
  }

  // Call before the step of this iteration.
  void use(Iteration iteration) const {
    if (all_.size() > 1) {
      learner_->gradients_into(of(iteration));
    }
  }

 private:
  Learner* learner_;
  std::vector<std::shared_ptr<float[]>> further_;
  std::vector<std::span<float>> all_;
};

}  // namespace sluice
