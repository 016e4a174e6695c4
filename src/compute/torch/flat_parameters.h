#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace sluice {

// Moves parameters into one flat buffer and their gradients into another, side by side in the given
// order. The tensors become views of the buffers and stay views throughout training, so that
// nothing is copied between autograd and the network.
class FlatParameters {
 public:
  explicit FlatParameters(const std::vector<at::Tensor>& parameters);

  std::span<float> values();
  std::span<float> gradients();
  // Gradients go to this buffer from now on; it must be as long as gradients().
  void gradients_into(std::span<float> buffer);
  // Autograd adds to gradients; this makes the next backward pass overwrite them.
  void zero_gradients();

 private:
  at::Tensor view_in(const at::Tensor& flat, std::size_t parameter) const;

  std::vector<at::Tensor> parameters_;
  std::vector<std::int64_t> offsets_;
  at::Tensor values_;
  at::Tensor own_gradients_;  // kept while gradients go elsewhere: they come back
  at::Tensor gradients_;      // where they go now
};

}  // namespace sluice
