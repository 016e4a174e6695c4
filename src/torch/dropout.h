#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace sluice {

// Zeroes a random share of its input during training and scales up the rest. Unlike LibTorch's
// module it has its own generator, so that threads do not disturb each other.
class DropoutImpl final : public torch::nn::Module {
 public:
  explicit DropoutImpl(double share);

  at::Tensor forward(const at::Tensor& x);
  void reseed(std::uint64_t seed);

 private:
  // On the device of the input.
  const at::Generator& generator_on(c10::Device device);

  double share_;
  std::uint64_t seed_ = 0;
  at::Generator random_;  // none before the first pass
};
TORCH_MODULE(Dropout);

}  // namespace sluice
