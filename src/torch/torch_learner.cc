#include "torch/torch_learner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/text.h"
#include "torch/models/table.h"
#include "torch/network_learner.h"
#include "torch/script_network.h"
#include "torch/starting_model.h"
#include "torch/task_network.h"

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
  return Error(
      fmt::format("model {}: there is no such model; choose one of {}, or name a TorchScript file "
                  "such as ./{}.pt",
                  name, fmt::join(names, ", "), name));
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

const char* noun_of(const SampleForm& form) {
  return form.words == 0 ? "samples" : form.shape[0] == 1 ? "characters" : "pairs of sentences";
}

Result<void> check_form(const ModelEntry& entry, const SampleForm& form) {
  if (takes(entry, form)) {
    return {};
  }
  return Error(fmt::format(
      "model {}: expected {} of shape {}{}, found {}; choose another model, data set or input size",
      entry.name, noun_of(entry.form), fmt::join(entry.form.shape, "x"),
      entry.smallest ? fmt::format(" or another size from {} on", *entry.smallest) : "",
      fmt::join(form.shape, "x")));
}

Result<void> check_task(const TorchTask& task) {
  for (const auto& data : {task.train, task.test}) {
    if (data == nullptr || data->size() == 0) {
      return Error(
          fmt::format("model {}: expected samples to train on and samples to test with, "
                      "found none; choose another data set",
                      task.model));
    }
  }
  if (task.batch < 1 || task.accumulate < 1 || task.workers < 1) {
    return Error(
        fmt::format("expected a batch, a number of micro-batches and a number of workers of at "
                    "least 1, found {}, {} and {}",
                    task.batch, task.accumulate, task.workers));
  }
  const std::int64_t samples = task.train->size();
  const std::int64_t batch = task.batch * task.accumulate;
  if (batch > samples / static_cast<std::int64_t>(task.workers)) {
    return Error(
        fmt::format("a batch of {} for each of {} workers needs more than the {} training "
                    "samples; lower the batch or the number of workers",
                    batch, task.workers, samples));
  }
  return {};
}

// A sample without padding, for which no work is skipped.
at::Tensor full_sample(const SampleForm& form) {
  std::vector<std::int64_t> shape = form.shape;
  shape.insert(shape.begin(), 1);
  return form.words > 0 ? at::full(shape, kFirstWord, at::kLong) : at::zeros(shape, at::kFloat);
}

Error refusal(const std::string& model, std::int64_t samples, const SampleForm& form,
              const std::exception& reason) {
  return Error(fmt::format("model {}: does not take {} sample{} of shape {}: {}", model, samples,
                           samples == 1 ? "" : "s", fmt::join(form.shape, "x"), gist_of(reason)));
}

// The networks of a user's file, after a trial on one sample: a failure should not wait for the
// evaluation at the end of a long run.
Result<NetworkFactory> find_script(const std::string& path, const SampleForm& form, Loss loss) {
  auto make = read_script(path, form, loss);
  if (!make) {
    return make;
  }
  try {
    const at::NoGradGuard no_grad;
    const std::unique_ptr<Network> network = (*make)();
    network->set_training(false);
    if (network->has_scores()) {
      network->forward(full_sample(form));
    }
  } catch (const std::exception& e) {
    return refusal(path, 1, form, e);
  }
  return make;
}

// Networks of a built-in model or of a file, for samples of this form.
Result<NetworkFactory> find_networks(const std::string& model, const SampleForm& form, Loss loss) {
  if (is_model_file(model)) {
    return find_script(model, form, loss);
  }
  auto entry = find_model(model);
  if (!entry) {
    return entry.error();
  }
  if (auto valid = check_form(*entry, form); !valid) {
    return valid.error();
  }
  if (form.classes == 0) {
    return Error(fmt::format(
        "model {}: the targets of the data are real numbers, expected class labels; save them as "
        "numpy.int64, or train a model from a file with --loss mse",
        model));
  }
  return NetworkFactory([make = entry->make, form] { return make(form); });
}

}  // namespace

Result<NetworkFactory> network_of_task(const TorchTask& task) {
  if (auto valid = check_task(task); !valid) {
    return valid.error();
  }
  if (const auto evaluators = find_networks(task.model, task.test->form(), task.loss);
      !evaluators) {
    return evaluators.error();
  }
  return find_networks(task.model, task.train->form(), task.loss);
}

Error refusal(const TorchTask& task, const std::exception& why) {
  if (dynamic_cast<const DataError*>(&why) != nullptr) {
    return Error(why.what());
  }
  return refusal(task.model, task.batch, task.train->form(), why);
}

Result<LearnerFactory> make_torch_learners(const TorchTask& task) {
  auto make = network_of_task(task);
  if (make && task.start && task.start->by_name) {
    make = starting_with(*make, task.start);
  }
  if (!make) {
    return make.error();
  }
  try {
    LearnerFactory learners = make_network_learners(*make, task);
    return task.start && !task.start->by_name ? starting_with(learners, task.start)
                                              : Result<LearnerFactory>(std::move(learners));
  } catch (const std::exception& e) {
    return refusal(task, e);
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
    models.push_back({entry.name, entry.description, entry.form, entry.size.parameters,
                      entry.size.layers, entry.size.forward_flops});
  }
  return models;
}

}  // namespace sluice
