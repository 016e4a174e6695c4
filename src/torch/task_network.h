#pragma once

#include <exception>

#include "base/result.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// The network that a task asks for. An error if there is none, or if the task's data do not fit.
Result<NetworkFactory> network_of_task(const TorchTask& task);

// What a user is told if the network cannot compute with the task's batches.
Error refusal(const TorchTask& task, const std::exception& why);

}  // namespace sluice
