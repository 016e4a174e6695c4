#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"

namespace sluice {

// Copies of tensors, under their numbers.
std::vector<TensorCopy> copies_of(std::span<const at::Tensor> tensors);
// Fills the tensors with such copies, which may come from anyone.
Result<void> fill_from(std::span<const StoredTensor> copies, std::span<const at::Tensor> tensors);

}  // namespace sluice
