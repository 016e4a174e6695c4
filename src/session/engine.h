#pragma once

#include "cli/settings.h"
#include "torch/torch_learner.h"

namespace sluice {

// Prepares this process to compute, on a CPU with the kernels that the user asked for or with those
// that are found to be faster, and says so in the log.
Kernels choose_kernels(const cli::Settings& settings, const TorchTask& task);

}  // namespace sluice
