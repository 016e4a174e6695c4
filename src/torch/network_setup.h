#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "data/dataset.h"
#include "data/micro_batches.h"
#include "torch/layout.h"
#include "torch/network.h"

// What a network needs before it can compute.
namespace sluice {

// How samples lie in memory. Parameters always lie in row-major order.
struct Placement {
  c10::Device device = c10::kCPU;
  bool channels_last = false;  // for images
};

// The batch as tensors in the network's placement; views of the batch if it is placed so already.
at::Tensor samples_of(Batch& batch, const Placement& placement);
at::Tensor labels_of(Batch& batch, const Placement& placement);
// Of a part of the batch; only that part is copied.
at::Tensor samples_of(Batch& batch, const MicroBatch& part, const Placement& placement);
at::Tensor labels_of(Batch& batch, const MicroBatch& part, const Placement& placement);

void move_to(const Network& network, c10::Device device);

// Records the order in which a forward pass reads the parameters: the given pass, or one on these
// samples.
Layout record_layout(const std::vector<NamedTensor>& parameters,
                     const std::function<void()>& forward);
Layout record_layout(Network& network, const at::Tensor& samples, const at::Tensor& labels);

// The parameters in the order of the layout.
std::vector<at::Tensor> parameters_in_order(const std::vector<NamedTensor>& parameters,
                                            const Layout& layout);
std::vector<at::Tensor> parameters_in_order(const Network& network, const Layout& layout);

}  // namespace sluice
