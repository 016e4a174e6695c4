#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "torch/layout.h"
#include "torch/network.h"

namespace sluice {

// The cost of an operator: arithmetic, and memory that it reads and writes, once for all samples
// (parameters) or per sample.
struct OperatorCost {
  std::int64_t flops = 0;
  Bytes parameters = 0;
  Bytes activations = 0;
  bool trained = false;  // needs a backward pass: trained parameters were read here or before
};

// The operators of a forward pass with its loss, by layer. An operator belongs to the layer whose
// first read came last before it; those before the first layer belong to the first. An operator
// that calls others stands for them, and one that only makes a view is left out. No other thread
// may compute meanwhile; see count_flops().
std::vector<std::vector<OperatorCost>> operators_by_layer(Network& network, const Layout& layout,
                                                          const at::Tensor& samples,
                                                          const at::Tensor& labels);

}  // namespace sluice
