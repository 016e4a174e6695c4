#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstddef>

#include "base/id.h"

namespace sluice {

// The least and the greatest value of each layer's gradient, which tell whether all are finite.
// They are found on the device, where the gradient is, and copied to the host in the order of a
// stream.
class GradientExtremes {
 public:
  GradientExtremes(std::size_t layers, c10::Device device);

  void find(LayerId layer, const at::Tensor& gradient, c10::Stream stream);
  // To a tensor of on_host().
  void bring(LayerId layer, const at::Tensor& host, c10::Stream stream) const;
  void bring_all(const at::Tensor& host, c10::Stream stream) const;

  // In pinned memory; as long as nothing is brought there, all are finite.
  static at::Tensor on_host(std::size_t layers);
  static bool are_finite(LayerId layer, const at::Tensor& host);

 private:
  at::Tensor by_layer_;
};

}  // namespace sluice
