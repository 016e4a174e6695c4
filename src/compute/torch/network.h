#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

struct NamedTensor {
  std::string name;  // with the path of its owner: "block1.conv2.weight"
  at::Tensor tensor;
};

// What a learner needs of a neural network.
class Network {
 public:
  virtual ~Network() = default;

  // Those that are trained, each tensor once, in the order of registration.
  virtual std::vector<NamedTensor> parameters() const = 0;
  // From a batch of samples to a batch of class scores. It must not draw random numbers: LibTorch
  // has one generator for all threads, and workers would disturb each other.
  virtual at::Tensor forward(const at::Tensor& features) = 0;
  virtual void set_training(bool on) = 0;
};

using NetworkFactory = std::function<std::unique_ptr<Network>()>;

}  // namespace sluice
