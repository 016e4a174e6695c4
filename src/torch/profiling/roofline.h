#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "torch/layout.h"
#include "torch/network.h"

namespace sluice {

// What an operator does: it computes, and it reads and writes memory, once for all samples
// (parameters) or for each of them.
struct OperatorCost {
  std::int64_t flops = 0;
  Bytes parameters = 0;
  Bytes activations = 0;
  bool trained = false;  // it needs a backward pass: trained parameters went in, here or before
};

// The operators of a forward pass with its loss, by the layer to which they belong: that whose
// parameters were first read last. What goes before the first layer counts as its own. An operator
// that calls others stands for them, and one that only looks at memory in another way is left out.
// Nobody else may compute meanwhile, see count_flops().
std::vector<std::vector<OperatorCost>> operators_by_layer(Network& network, const Layout& layout,
                                                          const at::Tensor& samples,
                                                          const at::Tensor& labels);

}  // namespace sluice
