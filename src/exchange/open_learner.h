#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/zeroed_buffer.h"
#include "learners/learner.h"

namespace sluice {

// A learner whose steps another thread takes. The trainer's thread lends its steps and waits until
// the phase is to end. The other thread has parameters of its own, and gets the sums of the
// gradients; in local steps it writes and reads parameters() where these turns are.
class OpenLearner final : public Learner {
 public:
  // The gradients are there, which are zeros now.
  OpenLearner(std::vector<Layer> layers, std::shared_ptr<float[]> gradients)
      : layers_(std::move(layers)),
        parameters_(static_cast<std::size_t>(total_params(layers_))),
        gradients_(std::move(gradients)) {}

  // For the trainer.
  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_.values(); }
  std::span<float> gradients() override { return {gradients_.get(), parameters_.values().size()}; }
  const std::shared_ptr<float[]>& shared_gradients() const { return gradients_; }
  void gradients_into(std::span<float> /*buffer*/) override {
    fail_check("gradients of one iteration are in use at a time");
  }
  bool drives() const override { return true; }
  void drive(OpenSteps& steps) override;
  std::optional<double> step(Iteration /*iteration*/, StepHooks& /*hooks*/) override {
    fail_check("another thread takes the steps");
  }
  bool can_update() const override { return true; }
  bool times_itself() const override { return true; }  // the exchange does: see Recording
  void update_with(const UpdateRule& /*rule*/, const BatchShare& /*share*/) override {}
  void step_locally(const UpdateRule& /*rule*/, LayerTurns turns) override {
    turns_.emplace(std::move(turns));
  }
  const LayerTurns& turns() const { return turns_.value(); }
  std::optional<Evaluation> evaluate() override { return {}; }

  // For the thread that takes the steps, in a phase: waits for its begin; throws if it fails.
  OpenSteps& steps();
  // Ends the phase.
  void end();
  // The phase fails for this reason, or has failed: whoever waits hears of it.
  void fail(std::exception_ptr why);

 private:
  std::vector<Layer> layers_;
  ZeroedBuffer parameters_;  // without local steps never touched: they take no memory
  std::shared_ptr<float[]> gradients_;
  std::optional<LayerTurns> turns_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  OpenSteps* steps_ = nullptr;  // while the trainer lends them
  bool ending_ = false;
  std::exception_ptr failure_;
};

}  // namespace sluice
