#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/synthetic.h"
#include "torch/torch_learner.h"

namespace sluice {

// Trains a built-in model on so many synthetic images of this side, in batches of 32.
inline TorchTask make_task(const std::string& model, std::int64_t side, std::int64_t samples,
                           std::size_t workers = 1) {
  const SampleForm form = *model_form(model, side);
  const DataSplit split = make_synthetic({.sample_shape = form.shape,
                                          .classes = form.classes,
                                          .train_samples = samples,
                                          .test_samples = 1});
  TorchTask task;
  task.model = model;
  task.train = std::make_shared<const DataSet>(split.train);
  task.test = std::make_shared<const DataSet>(split.test);
  task.batch = 32;
  task.workers = workers;
  return task;
}

}  // namespace sluice
