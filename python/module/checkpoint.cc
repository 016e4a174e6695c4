#include "checkpoint.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "exchange/loop_checkpoint.h"
#include "torch/element_types.h"

namespace sluice::python {

void save_checkpoint(Participant& participant, const std::string& folder, std::int64_t iteration,
                     const NamedTensors& tensors, std::size_t keep) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    const auto type = stored_type_of(tensor.scalar_type());
    if (!type || !tensor.device().is_cpu() || !tensor.is_contiguous()) {
      throw std::invalid_argument(fmt::format("{}: a checkpoint has no tensor of type {}", name,
                                              c10::toString(tensor.scalar_type())));
    }
    stored.push_back(
        {name, *type, tensor.sizes().vec(),
         std::as_bytes(std::span(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()))});
  }
  save_loop_checkpoint(participant, folder, iteration, stored, keep);
}

std::optional<std::pair<std::int64_t, NamedTensors>> load_checkpoint(Participant& participant,
                                                                     const std::string& folder) {
  const auto loaded = load_loop_checkpoint(participant, folder, [](const std::string& text) {
    fmt::print(stderr, "sluice: {}\n", text);
  });
  if (!loaded) {
    return std::nullopt;
  }
  NamedTensors tensors;
  for (const StoredTensor& stored : loaded->tensors) {
    const at::Tensor tensor =
        at::empty(stored.shape, at::TensorOptions().dtype(scalar_type_of(stored.type)));
    if (!stored.bytes.empty()) {
      std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    }
    tensors.emplace(stored.name, tensor);
  }
  return std::pair(loaded->iteration, std::move(tensors));
}

}  // namespace sluice::python
