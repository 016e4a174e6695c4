#pragma once

#include <filesystem>

#include "base/result.h"
#include "torch/network.h"

namespace sluice {

// Writes the network as it is now into this folder: its weights as model.safetensors and, if it
// came as TorchScript, the module itself as model.pt. Each file is whole or not there.
Result<void> save_network(const Network& network, const std::filesystem::path& folder);

}  // namespace sluice
