#pragma once

#include <optional>

#include "session/log.h"
#include "torch/torch_learner.h"

namespace sluice {

// Prepares this process to compute, on a CPU with the kernels that were asked for or with those
// that are found to be faster, and says so in the log.
Kernels choose_kernels(std::optional<Kernels> asked, const TorchTask& task, const Log& log);

}  // namespace sluice
