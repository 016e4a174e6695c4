#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compute/torch/network.h"

namespace sluice {

// Any torch::nn module that maps a tensor to a tensor, as it is.
template <class Module>
class ModuleNetwork final : public Network {
 public:
  explicit ModuleNetwork(std::shared_ptr<Module> module) : module_(std::move(module)) {}

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> parameters;
    std::unordered_set<const c10::TensorImpl*> seen;
    for (const auto& item : module_->named_parameters()) {
      const at::Tensor& tensor = item.value();
      if (tensor.requires_grad() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
        parameters.push_back({item.key(), tensor});
      }
    }
    return parameters;
  }

  at::Tensor forward(const at::Tensor& features) override { return module_->forward(features); }
  void set_training(bool on) override { module_->train(on); }

 private:
  std::shared_ptr<Module> module_;
};

template <class Module>
std::unique_ptr<Network> network_of(std::shared_ptr<Module> module) {
  return std::make_unique<ModuleNetwork<Module>>(std::move(module));
}

}  // namespace sluice
