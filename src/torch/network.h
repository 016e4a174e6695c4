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
  std::string name;  // qualified by its modules: "block1.conv2.weight"
  at::Tensor tensor;
};

// What a learner needs of a neural network.
class Network {
 public:
  virtual ~Network() = default;

  // The trained parameters, each tensor once, in the order of registration.
  virtual std::vector<NamedTensor> parameters() const = 0;
  // Everything else that its results depend on: frozen parameters, and buffers such as the running
  // statistics of a batch normalisation.
  virtual std::vector<at::Tensor> state() const = 0;

  // False if there is only a loss: forward() is not called.
  virtual bool has_scores() const { return true; }
  // Maps a batch of samples to the scores of the classes, one row per label.
  virtual at::Tensor forward(const at::Tensor& samples) = 0;
  // The mean loss of a batch, including that of auxiliary heads. Labels may be real targets.
  virtual at::Tensor loss(const at::Tensor& samples, const at::Tensor& labels) = 0;

  virtual void set_training(bool on) = 0;
  // Makes all randomness in the passes to come a function of this seed. All threads share
  // LibTorch's own generator, so workers would disturb each other: a network should not draw from
  // it if it can avoid it.
  virtual void reseed(std::uint64_t seed) = 0;

  // The tensors of parameters() and state(), under all their names.
  virtual std::vector<NamedTensor> weights() const = 0;
  // The current network as the bytes of a TorchScript file; none if it was not read from one.
  virtual std::optional<std::string> script() const = 0;
};

using NetworkFactory = std::function<std::unique_ptr<Network>()>;

}  // namespace sluice
