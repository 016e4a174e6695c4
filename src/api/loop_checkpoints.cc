#include "api/loop_checkpoints.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>

#include "exchange/loop_checkpoint.h"
#include "torch/element_types.h"

namespace sluice {
namespace {

using Visit = std::function<void(const std::string& name, const at::Tensor& tensor)>;

std::string optimizer_name(std::size_t model) { return fmt::format("optimizer.{}", model); }
std::string exchange_name(std::size_t model, const NamedTensor& state) {
  return fmt::format("exchange.{}.{}", model, state.name);
}

// All tensors of the loop but the states of its optimizers and exchanges, under their names in the
// file.
void for_each_tensor(const LoopModels& models, const LoopWorker::NamedParameters& more,
                     const Visit& visit) {
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (const auto& [name, tensor] : models[m]->parameters()) {
      visit(fmt::format("model.{}.{}", m, name), tensor);
    }
  }
  for (const auto& [name, tensor] : more) {
    visit("more." + name, tensor);
  }
}

std::span<const std::byte> bytes_of_tensor(const at::Tensor& tensor) {
  return std::as_bytes(std::span(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()));
}

// A copy of what a file has.
at::Tensor tensor_of(const StoredTensor& stored) {
  const at::Tensor tensor =
      at::empty(stored.shape, at::TensorOptions().dtype(scalar_type_of(stored.type)));
  if (!stored.bytes.empty()) {
    std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
  }
  return tensor;
}

}  // namespace

void save_checkpoint(Participant& participant, const LoopModels& models,
                     const LoopWorker::NamedParameters& more, const std::string& folder,
                     std::int64_t iteration, std::size_t keep) {
  if (iteration < 0 || keep < 1) {
    throw std::invalid_argument(
        "save_checkpoint: expected an iteration of at least 0 and at least 1 to keep");
  }
  std::vector<at::Tensor> values;  // of the views in `stored`
  std::vector<StoredTensor> stored;
  const Visit add = [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor& value = values.emplace_back(tensor.detach().cpu().contiguous());
    const auto type = stored_type_of(value.scalar_type());
    if (!type) {
      throw std::invalid_argument(fmt::format("save_checkpoint: {}: a file has no type {}", name,
                                              c10::toString(value.scalar_type())));
    }
    stored.push_back({name, *type, value.sizes().vec(), bytes_of_tensor(value)});
  };
  for (std::size_t m = 0; m < models.size(); ++m) {
    models[m]->wait();
    add(optimizer_name(m), models[m]->optimizer_state());
    for (const NamedTensor& state : models[m]->exchange_state()) {
      add(exchange_name(m, state), state.tensor);
    }
  }
  for_each_tensor(models, more, add);
  save_loop_checkpoint(participant, folder, iteration, stored, keep);
}

std::int64_t load_checkpoint(Participant& participant, const LoopModels& models,
                             const LoopWorker::NamedParameters& more, const std::string& folder) {
  for (const auto& model : models) {
    model->wait();
  }
  const auto loaded = load_loop_checkpoint(participant, folder, [](const std::string& text) {
    fmt::print(stderr, "sluice: {}\n", text);
  });
  if (!loaded) {
    return 0;
  }
  std::map<std::string, StoredTensor> saved;
  for (const StoredTensor& tensor : loaded->tensors) {
    saved.emplace(tensor.name, tensor);
  }
  const auto take = [&](const std::string& name) {
    const auto found = saved.extract(name);
    if (found.empty()) {
      throw std::runtime_error(fmt::format("{}: has no {}", folder, name));
    }
    return tensor_of(found.mapped());
  };
  const at::NoGradGuard no_grad;
  const Visit fill = [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor value = take(name);
    if (value.sizes() != tensor.sizes() || value.scalar_type() != tensor.scalar_type()) {
      throw std::runtime_error(fmt::format("{}: {} has another shape or type", folder, name));
    }
    tensor.copy_(value);
  };
  for_each_tensor(models, more, fill);
  for (std::size_t m = 0; m < models.size(); ++m) {
    models[m]->set_optimizer_state(take(optimizer_name(m)));
    models[m]->restore_exchange(
        [&](const NamedTensor& state) { fill(exchange_name(m, state), state.tensor); });
  }
  if (!saved.empty()) {
    throw std::runtime_error(
        fmt::format("{}: {} is nothing that this loop has", folder, saved.begin()->first));
  }
  return loaded->iteration;
}

}  // namespace sluice
