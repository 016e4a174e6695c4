#pragma once

#include <exception>

#include "base/result.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// The network of a task. An error if there is none, or if the task's data do not fit it.
Result<NetworkFactory> network_of_task(const TorchTask& task);

// The error for a network that cannot compute with the task's batches.
Error refusal(const TorchTask& task, const std::exception& why);

}  // namespace sluice
