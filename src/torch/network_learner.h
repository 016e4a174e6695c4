#pragma once

#include "learners/learner.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// Learners that train these networks on the task, whose model name is not used. All networks must
// have the same layers. They start with the parameters of one that is made from the task's seed.
LearnerFactory make_network_learners(const NetworkFactory& make_network, const TorchTask& task);

}  // namespace sluice
