#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "exchange/participant.h"

namespace sluice::python {

using NamedTensors = std::map<std::string, at::Tensor>;

// Collective, as save_loop_checkpoint() and load_loop_checkpoint(). Tensors are in host memory.
void save_checkpoint(Participant& participant, const std::string& folder, std::int64_t iteration,
                     const NamedTensors& tensors, std::size_t keep);
std::optional<std::pair<std::int64_t, NamedTensors>> load_checkpoint(Participant& participant,
                                                                     const std::string& folder);

}  // namespace sluice::python
