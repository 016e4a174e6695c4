#pragma once

#include <vector>

#include "api/loop_model.h"

namespace sluice {

// The optimizer gets the worker's own gradients, at the end of each step. Where an exchange begins,
// the exchange gets the parameters; where it ends, the model takes over what the exchange has,
// when the forward pass next reads it.
class LocalStepsModel final : public ExchangedModel {
 public:
  // Collective.
  LocalStepsModel(Participant& participant, const std::vector<NamedTensor>& parameters,
                  torch::optim::Optimizer& optimizer, const std::function<void()>& forward,
                  const LoopOptions& options)
      : ExchangedModel(participant, parameters, optimizer, forward, options),
        released_(layers(), true) {}

  void wait() override;
  void with_global_parameters(const std::function<void()>& use) override;
  std::vector<NamedTensor> exchange_state() override;
  void restore_exchange(const Take& take) override;

 private:
  void send(LayerId layer) override;
  void end_step(double loss) override;
  bool bring_up_to_date(std::size_t layer) override;
  // The exchange has nothing to do with it any more until the end of the next step.
  void release(std::size_t layer);

  std::vector<bool> released_;     // by layer
  std::vector<std::size_t> sent_;  // in the order of the backward pass
};

}  // namespace sluice
