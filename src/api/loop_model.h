#pragma once

#include <sluice/loop.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "learners/learner.h"
#include "torch/forward_gate.h"
#include "torch/gradient_hooks.h"
#include "torch/layout.h"
#include "torch/network.h"

namespace sluice {

// Ties the parameters of a program's model and their optimizer to an exchange. After a step a layer
// is due: its sum is on the way or here. It is updated when it is next read, at the latest before
// the next gradients are written.
class ExchangedModel final : public LoopModel, private StepHooks {
 public:
  // Collective.
  ExchangedModel(Participant& participant, const std::vector<NamedTensor>& parameters,
                 torch::optim::Optimizer& optimizer, const std::function<void()>& forward,
                 const LoopOptions& options);

  double step(const Loss& loss) override;
  double accumulate(const Loss& loss) override;
  void on_gradients(OnGradients call) override { on_gradients_ = std::move(call); }
  void wait() override;
  LoopMetrics metrics() const override { return metrics_; }

  // For checkpoints, after wait(): the parameters by name, which may be written, and what the
  // optimizer remembers, as bytes.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  at::Tensor optimizer_state() const;
  void set_optimizer_state(const at::Tensor& bytes);

 private:
  using Hyperparameters = std::vector<std::unique_ptr<torch::optim::OptimizerOptions>>;

  bool before_layer(LayerId layer) override;
  void forward_done() override { exchange_.forward_done(); }
  void gradient_ready(LayerId layer) override;

  double pass(const Loss& loss, bool sends);
  // Updates a layer that is due; false if its sum was not here.
  bool bring_up_to_date(std::size_t layer);
  void begin_alike();
  void clear_gradients();
  // The layer, which is due, and all others whose sums are here.
  void update_from(std::size_t layer);
  void update(const std::vector<std::size_t>& layers);
  // The parameter's part of the exchange's buffer, in host memory.
  at::Tensor sum_of(std::size_t parameter);
  Hyperparameters hyperparameters() const;
  // Gives the optimizer these and returns its own.
  Hyperparameters exchange_hyperparameters(Hyperparameters with);

  Participant& participant_;
  const std::vector<NamedTensor> parameters_;
  torch::optim::Optimizer& optimizer_;
  const bool stop_on_nonfinite_;
  OnGradients on_gradients_;
  Layout layout_;
  std::vector<at::Tensor> tensors_;                 // in the order of the layout
  std::vector<std::vector<std::size_t>> of_layer_;  // indices of tensors
  std::vector<std::int64_t> offsets_;               // by tensor, in the exchange's buffer
  GradientExchange exchange_;
  ForwardGate gate_;
  GradientHooks gradient_hooks_;
  bool accumulating_ = false;  // gradients of earlier passes are there
  std::vector<bool> due_;      // by layer
  Hyperparameters at_step_;    // those of the updates that are due
  LoopMetrics metrics_;
};

}  // namespace sluice
