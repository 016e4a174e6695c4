#pragma once

#include <memory>
#include <span>
#include <vector>

#include "support/toy_learner.h"

namespace sluice::testing {

// A learner whose gradients are whole numbers. Their sums are exact in any order, so the way of
// summing must not show in the result.
class WholeNumbers final : public Learner {
 public:
  WholeNumbers(const std::vector<std::int64_t>& params, std::size_t rank)
      : toy_(params, rank), rank_(rank), target_(toy_.gradients()) {}

  const std::vector<Layer>& layers() const override { return toy_.layers(); }
  std::span<float> parameters() override { return toy_.parameters(); }
  std::span<float> gradients() override { return toy_.gradients(); }
  void gradients_into(std::span<float> buffer) override {
    toy_.gradients_into(buffer);
    target_ = buffer;
  }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    Rounding rounding{*this, hooks, iteration};
    return toy_.step(iteration, rounding);
  }
  std::optional<Evaluation> evaluate() override { return {}; }

  static float gradient(std::int64_t index, std::size_t rank, Iteration iteration);

 private:
  struct Rounding final : StepHooks {
    Rounding(WholeNumbers& owner, StepHooks& inner, Iteration iteration)
        : owner(owner), inner(inner), iteration(iteration) {}
    bool before_layer(LayerId layer) override { return inner.before_layer(layer); }
    void forward_done() override { inner.forward_done(); }
    void gradient_ready(LayerId layer) override;
    WholeNumbers& owner;
    StepHooks& inner;
    Iteration iteration;
  };

  ToyLearner toy_;
  std::size_t rank_;
  std::span<float> target_;  // where to write gradients
};

std::vector<std::unique_ptr<Learner>> whole_numbers(const std::vector<std::int64_t>& params,
                                                    std::size_t workers);

}  // namespace sluice::testing
