#pragma once

#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"
#include "nodes/assembly.h"

namespace sluice {

// What the nodes of a host know beside the numbers that they compute with: the weights of GoSGD, in
// a checkpoint as `worker.R.weights`. Copied between two phases.
std::vector<TensorCopy> copy_weights(const Assembly& assembly, HostId host);

// Gives the nodes of a host this share of their weights, and takes these out of what was saved,
// which may come from anyone.
Result<void> take_weights(std::vector<StoredTensor>& saved, const Assembly& assembly, HostId host,
                          double share);

}  // namespace sluice
