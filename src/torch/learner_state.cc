#include "torch/learner_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "torch/saved_network.h"

namespace sluice {

std::vector<TensorCopy> copies_of(std::span<const at::Tensor> tensors) {
  std::vector<TensorCopy> copies;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor value = tensor.detach().cpu().contiguous();
    const auto type = element_type_of(value);
    check(static_cast<bool>(type), "the state of a network has types that files have");
    const auto bytes =
        std::as_bytes(std::span(static_cast<const char*>(value.data_ptr()), value.nbytes()));
    copies.push_back(
        {std::to_string(copies.size()), *type, value.sizes().vec(), {bytes.begin(), bytes.end()}});
  }
  return copies;
}

Result<void> fill_from(std::span<const StoredTensor> copies, std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  if (copies.size() != tensors.size()) {
    return Error(fmt::format("the model has {} tensors besides its parameters, and {} were saved",
                             tensors.size(), copies.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto saved = std::ranges::find(copies, std::to_string(i), &StoredTensor::name);
    const at::Tensor value = at::empty_like(tensors[i], tensors[i].options().device(c10::kCPU),
                                            at::MemoryFormat::Contiguous);
    const auto type = element_type_of(value);
    if (saved == copies.end() || !type || saved->type != *type ||
        saved->shape != value.sizes().vec()) {
      return Error(
          fmt::format("tensor {} besides the parameters of the model was saved otherwise", i));
    }
    std::memcpy(value.data_ptr(), saved->bytes.data(), saved->bytes.size());
    tensors[i].copy_(value);
  }
  return {};
}

}  // namespace sluice
