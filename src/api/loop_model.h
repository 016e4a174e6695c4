#pragma once

#include <sluice/loop.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "learners/learner.h"
#include "torch/forward_gate.h"
#include "torch/gradient_hooks.h"
#include "torch/layout.h"
#include "torch/network.h"

namespace sluice {

// Ties the parameters of a program's model and their optimizer to an exchange.
class ExchangedModel : public LoopModel, private StepHooks {
 public:
  double step(const Loss& loss) final;
  double accumulate(const Loss& loss) final;
  void on_gradients(OnGradients call) final { on_gradients_ = std::move(call); }
  LoopMetrics metrics() const final { return metrics_; }

  // For checkpoints, after wait(): the parameters by name, which may be written, and what the
  // optimizer remembers, as bytes.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  at::Tensor optimizer_state() const;
  void set_optimizer_state(const at::Tensor& bytes);
  // Likewise: what the exchange remembers, by name; nothing unless it is one of local steps. Waits
  // for sums that are on their way.
  virtual std::vector<NamedTensor> exchange_state() { return {}; }
  // Collective, before the first step. Has `take` write what has been kept under these names.
  using Take = std::function<void(const NamedTensor&)>;
  virtual void restore_exchange(const Take& /*take*/) {}

 protected:
  // Collective. All begin with the values of rank 0.
  ExchangedModel(Participant& participant, const std::vector<NamedTensor>& parameters,
                 torch::optim::Optimizer& optimizer, const std::function<void()>& forward,
                 const LoopOptions& options);

  // The backward pass has made the layer's gradients, and on_gradients() has seen them.
  virtual void send(LayerId layer) = 0;
  // Both passes are over.
  virtual void end_step(double loss) = 0;
  // Before the forward pass reads the layer; false if it had to wait.
  virtual bool bring_up_to_date(std::size_t layer) = 0;

  std::size_t layers() const { return of_layer_.size(); }
  const std::string& name_of_layer(std::size_t layer) const { return layout_.layers[layer].name; }
  // Indices of tensors().
  const std::vector<std::size_t>& of_layer(std::size_t layer) const { return of_layer_[layer]; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }  // in the layout's order
  // The parameter's part of a buffer of the exchange, in host memory.
  at::Tensor part_of(std::span<float> buffer, std::size_t parameter) const;
  torch::optim::Optimizer& optimizer() { return optimizer_; }
  const Participant& participant() const { return participant_; }
  GradientExchange& exchange() { return exchange_; }
  // As the one of the exchange; what it took is in metrics().
  void wait_for(std::size_t layer);
  void clear_gradients();
  // Unless the program goes on anyway.
  void check_finite(std::size_t layer, const std::function<bool()>& is_finite) const;

 private:
  bool before_layer(LayerId layer) final;
  void forward_done() final { exchange_.forward_done(); }
  void gradient_ready(LayerId layer) final;
  double pass(const Loss& loss, bool sends);

  const Participant& participant_;
  const std::vector<NamedTensor> parameters_;
  torch::optim::Optimizer& optimizer_;
  const bool stop_on_nonfinite_;
  OnGradients on_gradients_;
  Layout layout_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::int64_t> offsets_;  // by tensor, in buffers of the exchange
  std::vector<std::vector<std::size_t>> of_layer_;
  GradientExchange exchange_;
  ForwardGate gate_;
  GradientHooks gradient_hooks_;
  bool accumulating_ = false;  // gradients of earlier passes are there
  LoopMetrics metrics_;
};

// Collective.
std::unique_ptr<ExchangedModel> exchanged_model(Participant& participant,
                                                const std::vector<NamedTensor>& parameters,
                                                torch::optim::Optimizer& optimizer,
                                                const std::function<void()>& forward,
                                                const LoopOptions& options);

}  // namespace sluice
