#pragma once

#include <filesystem>

#include "base/result.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// Writes the network as it is now into this folder: its weights as model.safetensors, what its
// samples went through and what its answers mean as model.json and, if it came as TorchScript, the
// module itself as model.pt. Each file is whole or not there.
Result<void> save_network(const Network& network, const TorchTask& task,
                          const std::filesystem::path& folder);

}  // namespace sluice
