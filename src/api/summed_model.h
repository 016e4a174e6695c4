#pragma once

#include <memory>
#include <vector>

#include "api/loop_model.h"

namespace sluice {

// The optimizer gets mean gradients of all workers. After a step a layer is due: its sum is on the
// way or here. It is updated when it is next read, at the latest before the next gradients are
// written.
class SummedModel final : public ExchangedModel {
 public:
  // Collective.
  SummedModel(Participant& participant, const std::vector<NamedTensor>& parameters,
              torch::optim::Optimizer& optimizer, const std::function<void()>& forward,
              const LoopOptions& options)
      : ExchangedModel(participant, parameters, optimizer, forward, options),
        due_(layers(), false) {}

  void wait() override;
  void with_global_parameters(const std::function<void()>& use) override;

 private:
  using Hyperparameters = std::vector<std::unique_ptr<torch::optim::OptimizerOptions>>;

  void send(LayerId layer) override;
  void end_step(double loss) override;
  // Waits only for a layer that is due.
  bool bring_up_to_date(std::size_t layer) override;
  // The layer, which is due, and all others whose sums are here.
  void update_from(std::size_t layer);
  void update(const std::vector<std::size_t>& layers);
  at::Tensor sum_of(std::size_t parameter);
  Hyperparameters hyperparameters();
  // Gives the optimizer these and returns its own.
  Hyperparameters exchange_hyperparameters(Hyperparameters with);

  std::vector<bool> due_;    // by layer
  Hyperparameters at_step_;  // those of the updates that are due
};

}  // namespace sluice
