#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace sluice {

// The elements of a flat tensor in host memory.
std::span<float> span_of(const at::Tensor& flat);

// Moves parameters into one flat buffer on a device and their gradients into another, contiguous in
// the given order. The tensors become views of the buffers and stay views throughout training, so
// that nothing is copied between autograd and the network.
class FlatParameters {
 public:
  FlatParameters(const std::vector<at::Tensor>& parameters, c10::Device device);

  const at::Tensor& values() const { return values_; }
  const at::Tensor& gradients() const { return gradients_; }
  // From now on gradients go to this buffer, which must be as long as gradients(). Only for
  // parameters on the host.
  void gradients_into(std::span<float> buffer);
  // Autograd adds to gradients; this makes the next backward pass overwrite them.
  void zero_gradients();

 private:
  at::Tensor view_in(const at::Tensor& flat, std::size_t parameter) const;

  std::vector<at::Tensor> parameters_;
  std::vector<std::int64_t> offsets_;
  at::Tensor values_;
  at::Tensor own_gradients_;  // kept while gradients go elsewhere, for their return
  at::Tensor gradients_;      // where they go now
};

}  // namespace sluice
