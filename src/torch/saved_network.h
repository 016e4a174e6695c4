#pragma once

#include <filesystem>

#include "base/result.h"
#include "formats/safetensors.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// The type of a file for that of a tensor.
Result<ElementType> element_type_of(const at::Tensor& tensor);

// Writes the current network to this folder: its weights as model.safetensors, the preparation of
// its samples and the meaning of its labels as model.json and, if it was read from a TorchScript
// file, the module as model.pt. Each file is complete or absent.
Result<void> save_network(const Network& network, const TorchTask& task,
                          const std::filesystem::path& folder);

}  // namespace sluice
