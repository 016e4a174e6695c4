#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "learners/learner.h"

namespace sluice {

// Computes nothing, so an iteration takes as long as its synchronisation. Gradients stay zero.
class IdleLearner final : public Learner {
 public:
  explicit IdleLearner(std::vector<Layer> layers)
      : layers_(std::move(layers)),
        parameters_(static_cast<std::size_t>(total_params(layers_))),
        gradients_(parameters_.size()) {}

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void gradients_into(std::span<float> /*buffer*/) override {}
  std::optional<double> step(Iteration /*iteration*/, StepHooks& hooks) override {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      hooks.before_layer(LayerId(l));
    }
    hooks.forward_done();
    for (std::size_t l = layers_.size(); l-- > 0;) {
      hooks.gradient_ready(LayerId(l));
    }
    return std::nullopt;
  }
  std::optional<Evaluation> evaluate() override { return {}; }
  void update_with(const UpdateRule& /*rule*/, const BatchShare& /*share*/) override {}

 private:
  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
};

}  // namespace sluice
