#pragma once

#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"
#include "nodes/assembly.h"

namespace sluice {

// What the nodes of a host know beside the numbers that they compute with: the weights of GoSGD, in
// a checkpoint as `worker.R.weights`, and what they keep for a later iteration, as
// `worker.R.kept.P` for each place P that is not empty. Copied between two phases.
std::vector<TensorCopy> copy_knowledge(const Assembly& assembly, HostId host);

// Gives the nodes of a host this share of the weights, and the rest as it is, and takes both out of
// what was saved, which may come from anyone.
Result<void> take_knowledge(std::vector<StoredTensor>& saved, const Assembly& assembly, HostId host,
                            double share);

}  // namespace sluice
