#include "torch/saved_network.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include "base/file.h"
#include "formats/safetensors.h"
#include "torch/element_types.h"

namespace sluice {
namespace {

Result<void> save_weights(const Network& network, const std::filesystem::path& path) {
  std::vector<at::Tensor> values;  // of the views in `tensors`
  std::vector<StoredTensor> tensors;
  for (const NamedTensor& weight : network.weights()) {
    const auto type = element_type_of(weight.tensor);
    if (!type) {
      return type.error().within(weight.name).within(path.string());
    }
    const at::Tensor& value = values.emplace_back(weight.tensor.detach().cpu().contiguous());
    tensors.push_back(
        {weight.name, *type, value.sizes().vec(),
         std::as_bytes(std::span(static_cast<const char*>(value.data_ptr()), value.nbytes()))});
  }
  const auto written = write_safetensors(path, std::move(tensors));
  return written ? Result<void>() : written.error();
}

}  // namespace

Result<ElementType> element_type_of(const at::Tensor& tensor) {
  const auto type = stored_type_of(tensor.scalar_type());
  if (!type) {
    return Error(fmt::format("safetensors has no type {}", c10::toString(tensor.scalar_type())));
  }
  return *type;
}

Result<void> save_network(const Network& network, const TorchTask& task,
                          const std::filesystem::path& folder) {
  if (const auto saved = save_weights(network, folder / "model.safetensors"); !saved) {
    return saved.error();
  }
  const std::string description =
      to_json_text(task.model, task.test->form().shape, task.test->preparation());
  if (const auto saved = write_file(folder / "model.json", description); !saved) {
    return saved.error();
  }
  const auto script = network.script();
  return script ? write_file(folder / "model.pt", *script) : Result<void>();
}

}  // namespace sluice
