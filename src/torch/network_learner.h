#pragma once

#include "learners/learner.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// Learners that train networks of this kind as the task says; the name of the task's model is not
// read. The networks, which must all be alike, start with the parameters of one that is made from
// the task's seed.
LearnerFactory make_network_learners(const NetworkFactory& make_network, const TorchTask& task);

}  // namespace sluice
