#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/module.h>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "torch/dropout.h"
#include "torch/network.h"

namespace sluice {

// Any unmodified torch::nn module that maps samples to scores. The loss is the cross entropy,
// unless the module has its own loss().
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

  std::vector<at::Tensor> state() const override {
    std::vector<at::Tensor> state = module_->buffers();
    for (const at::Tensor& parameter : module_->parameters()) {
      if (!parameter.requires_grad()) {
        state.push_back(parameter);
      }
    }
    return state;
  }

  at::Tensor forward(const at::Tensor& samples) override { return module_->forward(samples); }

  at::Tensor loss(const at::Tensor& samples, const at::Tensor& labels) override {
    if constexpr (requires { module_->loss(samples, labels); }) {
      return module_->loss(samples, labels);
    } else {
      return at::cross_entropy_loss(module_->forward(samples), labels);
    }
  }

  void set_training(bool on) override { module_->train(on); }

  void reseed(std::uint64_t seed) override {
    Random random(seed);
    for (const auto& part : module_->modules()) {
      if (auto* dropout = part->template as<DropoutImpl>()) {
        dropout->reseed(random.next());
      }
    }
  }

  std::vector<NamedTensor> weights() const override {
    std::vector<NamedTensor> weights;
    for (const auto& items : {module_->named_parameters(), module_->named_buffers()}) {
      for (const auto& item : items) {
        weights.push_back({item.key(), item.value()});
      }
    }
    return weights;
  }

  std::optional<std::string> script() const override { return std::nullopt; }

 private:
  std::shared_ptr<Module> module_;
};

template <class Module>
std::unique_ptr<Network> network_of(std::shared_ptr<Module> module) {
  return std::make_unique<ModuleNetwork<Module>>(std::move(module));
}

}  // namespace sluice
