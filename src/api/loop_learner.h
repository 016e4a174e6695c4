#pragma once

#include <sluice/loop.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "learners/learner.h"
#include "torch/flat_parameters.h"
#include "torch/forward_gate.h"
#include "torch/gradient_hooks.h"
#include "torch/layer_calls.h"
#include "torch/layout.h"

namespace sluice {

// One worker with its own loop. Two threads meet here. The loop's thread does everything that
// computes. The trainer's thread, which every worker has, opens the steps one after another and
// waits until the loop has taken each of them.
class LoopLearner final : public LoopWorker, public Learner {
 public:
  LoopLearner(std::size_t rank, std::size_t workers, Iteration iterations)
      : rank_(rank), workers_(workers), iterations_(iterations) {}

  // For the loop.
  std::size_t rank() const override { return rank_; }
  std::size_t workers() const override { return workers_; }
  void attach(const NamedParameters& parameters, const std::function<void()>& forward) override;
  double step(const std::function<at::Tensor()>& loss) override;
  void wait() override;

  // For the trainer, once attached.
  const std::vector<Layer>& layers() const override { return replica_->layout.layers; }
  std::span<float> parameters() override { return span_of(replica_->flat.values()); }
  std::span<float> gradients() override { return span_of(replica_->flat.gradients()); }
  void gradients_into(std::span<float> buffer) override { replica_->flat.gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override;
  std::optional<Evaluation> evaluate() override { return {}; }

  // For the code that runs both. If the loop does not attach, throws what the loop threw, or that
  // it ended.
  void wait_until_attached();
  void loop_ended(std::exception_ptr failure);
  // No more steps will be opened, since all have been taken or because of a failure or a signal.
  void run_ended(bool broken_off);
  // After both have ended: throws what the loop threw, if it did.
  void rethrow() const;

 private:
  struct Replica {
    Layout layout;
    FlatParameters flat;
    ForwardGate gate;
    GradientHooks gradient_hooks;
  };

  // Waits until the trainer has opened the next step; false if a signal has stopped the run.
  bool opens();
  // Throws what the loop threw, or that it ended too early.
  [[noreturn]] void fail_loop() const;

  const std::size_t rank_;
  const std::size_t workers_;
  const Iteration iterations_;

  // Belongs to the loop's thread; once attached, the replica is shared.
  std::unique_ptr<Replica> replica_;
  std::optional<LayerCalls> calls_;  // of the current step
  Iteration taken_ = 0;              // steps

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool attached_ = false;
  StepHooks* hooks_ = nullptr;  // of the step that is open
  double loss_ = 0;             // of the step taken last
  bool loop_ended_ = false;
  std::exception_ptr loop_failure_;
  bool run_ended_ = false;
  bool broken_off_ = false;
};

}  // namespace sluice
