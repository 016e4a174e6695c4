#pragma once

#include <functional>

#include "base/id.h"
#include "torch/network.h"

namespace sluice {

// Replaces the running statistics of the network's batch normalisations by the mean over some
// training batches, whatever they were before. `forward` passes a batch, by number, through the
// network in training mode. Does nothing to a network without them.
void estimate_statistics(const Network& network,
                         const std::function<void(Iteration batch)>& forward);

}  // namespace sluice
