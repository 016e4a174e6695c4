#include "compute/torch/torch_learner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compute/torch/layout.h"
#include "compute/torch/models.h"
#include "compute/torch/network_learner.h"

namespace sluice {
namespace {

Result<ModelEntry> find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_table()) {
    if (entry.name == name) {
      return entry;
    }
    names.push_back(entry.name);
  }
  return Error(fmt::format("model {}: there is no such model; choose one of {}", name,
                           fmt::join(names, ", ")));
}

Result<void> check_task(const TorchTask& task, const ModelEntry& entry) {
  for (const auto& data : {task.train, task.test}) {
    if (data == nullptr || data->size() == 0) {
      return Error(
          fmt::format("model {}: expected samples to train on and samples to test with, "
                      "found none; choose another data set",
                      entry.name));
    }
    if (data->sample_shape != entry.input_shape) {
      return Error(fmt::format(
          "model {}: expected samples of shape {}, found {}; choose another "
          "model or data set",
          entry.name, fmt::join(entry.input_shape, "x"), fmt::join(data->sample_shape, "x")));
    }
  }
  if (task.batch < 1 || task.workers < 1) {
    return Error(
        fmt::format("expected a batch and a number of workers of at least 1, found {} and {}",
                    task.batch, task.workers));
  }
  const std::int64_t samples = task.train->size();
  if (task.batch > samples / static_cast<std::int64_t>(task.workers)) {
    return Error(
        fmt::format("a batch of {} for each of {} workers needs more than the {} training "
                    "samples; lower the batch or the number of workers",
                    task.batch, task.workers, samples));
  }
  return {};
}

}  // namespace

Result<LearnerFactory> make_torch_learners(const TorchTask& task) {
  auto entry = find_model(task.model);
  if (!entry) {
    return entry.error();
  }
  if (auto valid = check_task(task, *entry); !valid) {
    return valid.error();
  }
  return make_network_learners(
      [make = entry->make, classes = task.train->classes] { return make(classes); }, task);
}

std::vector<ModelInfo> torch_models() {
  constexpr std::int64_t kClasses = 10;
  std::vector<ModelInfo> models;
  for (const ModelEntry& entry : model_table()) {
    std::vector<ParameterSize> sizes;
    for (const NamedTensor& parameter : entry.make(kClasses)->parameters()) {
      sizes.push_back({parameter.name, parameter.tensor.numel()});
    }
    const std::vector<Layer> layers = make_layout(sizes, {}).layers;
    models.push_back(
        {entry.name, entry.description, entry.input_shape, total_params(layers), layers.size()});
  }
  return models;
}

}  // namespace sluice
