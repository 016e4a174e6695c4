#pragma once

#include <optional>

#include "session/log.h"
#include "torch/torch_learner.h"

namespace sluice {

// Prepares this process to compute. On a CPU it uses the kernels that were asked for, or measures
// which are faster, and logs the choice. Throws if the task's precision does not work.
Kernels choose_kernels(std::optional<Kernels> asked, const TorchTask& task, const Log& log);

}  // namespace sluice
