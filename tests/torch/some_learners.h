#pragma once

#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/synthetic.h"
#include "torch/models/table.h"
#include "torch/module_network.h"
#include "torch/network_learner.h"

namespace sluice {

using Floats = std::vector<float>;

// All difficult cases: modules registered in another order than used, one never used, one used and
// registered twice, bare parameters read as a list, and one that is not trained.
class Crooked final : public torch::nn::Module {
 public:
  Crooked()
      : exit_(register_module("exit", torch::nn::Linear(5, 3))),
        spare_(register_module("spare", torch::nn::Linear(2, 2))),
        entry_(register_module("entry", torch::nn::Linear(6, 5))),
        shared_(register_module("shared", torch::nn::Linear(5, 5))),
        again_(register_module("again", shared_)),
        scale_(register_parameter("scale", at::full({5}, 1.5F))),
        shift_(register_parameter("shift", at::full({5}, 0.1F))),
        frozen_(register_parameter("frozen", at::full({5}, 0.2F), false)) {}

  at::Tensor forward(const at::Tensor& features) {
    at::Tensor x = entry_(features).tanh();
    x = again_(shared_(x).tanh()).tanh();
    const at::Tensor affine = at::stack({scale_, shift_});
    return exit_(x * affine[0] + affine[1] + frozen_);
  }

 private:
  torch::nn::Linear exit_;
  torch::nn::Linear spare_;
  torch::nn::Linear entry_;
  torch::nn::Linear shared_;
  torch::nn::Linear again_;
  at::Tensor scale_;
  at::Tensor shift_;
  at::Tensor frozen_;
};

inline std::unique_ptr<Network> make_crooked() { return network_of(std::make_shared<Crooked>()); }

inline TorchTask task_with(std::vector<std::int64_t> shape, std::int64_t classes) {
  SyntheticSpec spec;
  spec.sample_shape = std::move(shape);
  spec.classes = classes;
  spec.train_samples = 64;
  spec.test_samples = 16;
  const DataSplit split = make_synthetic(spec);
  TorchTask task;
  task.train = std::make_shared<DataSet>(split.train);
  task.test = std::make_shared<DataSet>(split.test);
  task.batch = 8;
  task.workers = 2;
  return task;
}

inline LearnerFactory crooked_learners() {
  return make_network_learners(make_crooked, task_with({6}, 3));
}

inline LearnerFactory learners_of(const std::string& model, const TorchTask& task) {
  const std::vector<ModelEntry> table = model_table();
  const auto entry = std::ranges::find(table, model, &ModelEntry::name);
  return make_network_learners(
      [make = entry->make, form = task.train->form()] { return make(form); }, task);
}

inline LearnerFactory lenet_learners() { return learners_of("lenet", task_with({1, 28, 28}, 10)); }

// Branches, auxiliary heads, batch normalisation and dropout.
inline LearnerFactory googlenet_learners() {
  TorchTask task = task_with({3, 32, 32}, 4);
  task.batch = 2;
  return learners_of("googlenet", task);
}

// Sentences of several lengths, so that micro-batches have different numbers of labels.
inline TorchTask text_task() {
  const TextSplit split = make_synthetic_text({.longest = 6,
                                               .source_words = 30,
                                               .target_words = 20,
                                               .train_samples = 64,
                                               .test_samples = 16});
  TorchTask task;
  task.train = std::make_shared<TextSet>(split.train);
  task.test = std::make_shared<TextSet>(split.test);
  task.workers = 2;
  return task;
}

inline LearnerFactory sockeye_learners() {
  TorchTask task = text_task();
  task.batch = 3;
  return learners_of("sockeye", task);
}

inline std::vector<LearnerFactory> all_kinds() {
  return {crooked_learners(), lenet_learners(), googlenet_learners(), sockeye_learners()};
}

inline Floats copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

inline std::span<float> part(std::span<float> values, const Layer& layer) {
  return values.subspan(static_cast<std::size_t>(layer.range.begin),
                        static_cast<std::size_t>(layer.range.size()));
}

}  // namespace sluice
