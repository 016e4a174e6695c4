#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  // All else that its results depend on: frozen parameters, and what it has gathered on the way,
  // such as the running statistics of a batch normalisation.
  virtual std::vector<at::Tensor> state() const = 0;

  // From a batch of samples to the scores of the classes, one row for every answer.
  virtual at::Tensor forward(const at::Tensor& samples) = 0;
  // The mean loss of a batch, which is to be made small; auxiliary heads have their part in it.
  virtual at::Tensor loss(const at::Tensor& samples, const at::Tensor& labels) = 0;

  virtual void set_training(bool on) = 0;
  // All that is random in the passes to come is a function of this seed. LibTorch's own generator
  // serves all threads, where workers would disturb each other: a network must not draw from it if
  // it can do without.
  virtual void reseed(std::uint64_t seed) = 0;

  // All that parameters() and state() have, under every name that it has.
  virtual std::vector<NamedTensor> weights() const = 0;
  // The network as it is now, as the bytes of a TorchScript file; nothing if it did not come as
  // one.
  virtual std::optional<std::string> script() const = 0;
};

using NetworkFactory = std::function<std::unique_ptr<Network>()>;

}  // namespace sluice
