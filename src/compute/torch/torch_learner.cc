#include "compute/torch/torch_learner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compute/data/text.h"
#include "compute/torch/flops.h"
#include "compute/torch/layout.h"
#include "compute/torch/models/table.h"
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

bool takes(const ModelEntry& entry, const SampleForm& form) {
  const std::vector<std::int64_t>& own = entry.form.shape;
  const std::vector<std::int64_t>& shape = form.shape;
  const bool alike = shape.size() == own.size() && shape[0] == own[0] &&
                     (form.words > 0) == (entry.form.words > 0);
  return alike &&
         (entry.smallest ? *std::min_element(shape.begin() + 1, shape.end()) >= *entry.smallest
                         : shape == own);
}

Result<void> check_form(const ModelEntry& entry, const SampleForm& form) {
  if (takes(entry, form)) {
    return {};
  }
  return Error(fmt::format(
      "model {}: expected {} of shape {}{}, found {}; choose another model, data set or input size",
      entry.name, entry.form.words > 0 ? "pairs of sentences" : "samples",
      fmt::join(entry.form.shape, "x"),
      entry.smallest ? fmt::format(" or another size from {} on", *entry.smallest) : "",
      fmt::join(form.shape, "x")));
}

Result<void> check_task(const TorchTask& task, const ModelEntry& entry) {
  for (const auto& data : {task.train, task.test}) {
    if (data == nullptr || data->size() == 0) {
      return Error(
          fmt::format("model {}: expected samples to train on and samples to test with, "
                      "found none; choose another data set",
                      entry.name));
    }
    if (auto valid = check_form(entry, data->form()); !valid) {
      return valid.error();
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

// A sample for which nothing is left out.
at::Tensor full_sample(const SampleForm& form) {
  std::vector<std::int64_t> shape = form.shape;
  shape.insert(shape.begin(), 1);
  return form.words > 0 ? at::full(shape, kFirstWord, at::kLong) : at::zeros(shape, at::kFloat);
}

ModelInfo info_of(const ModelEntry& entry) {
  const std::unique_ptr<Network> network = entry.make(entry.form);
  std::vector<ParameterSize> sizes;
  for (const NamedTensor& parameter : network->parameters()) {
    sizes.push_back({parameter.name, parameter.tensor.numel()});
  }
  const std::vector<Layer> layers = make_layout(sizes, {}).layers;
  const at::NoGradGuard no_grad;
  network->set_training(false);
  const at::Tensor sample = full_sample(entry.form);
  return {entry.name,           entry.description, entry.form,
          total_params(layers), layers.size(),     count_flops([&] { network->forward(sample); })};
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
  const SampleForm form = task.train->form();
  try {
    return make_network_learners([make = entry->make, form] { return make(form); }, task);
  } catch (const c10::Error& e) {
    return Error(fmt::format("model {}: LibTorch refuses a batch of {} samples of shape {}: {}",
                             task.model, task.batch, fmt::join(form.shape, "x"),
                             e.what_without_backtrace()));
  }
}

Result<SampleForm> model_form(const std::string& model, std::int64_t input_size) {
  auto entry = find_model(model);
  if (!entry) {
    return entry.error();
  }
  SampleForm form = entry->form;
  if (input_size != 0) {
    std::fill(form.shape.begin() + 1, form.shape.end(), input_size);
  }
  if (auto valid = check_form(*entry, form); !valid) {
    return valid.error();
  }
  return form;
}

std::vector<ModelInfo> torch_models() {
  std::vector<ModelInfo> models;
  for (const ModelEntry& entry : model_table()) {
    models.push_back(info_of(entry));
  }
  return models;
}

}  // namespace sluice
