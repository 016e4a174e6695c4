#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "torch/network.h"

namespace sluice {

// The size of a model with the samples that it was made for. Stored because counting takes seconds
// per model; a test checks the numbers.
struct ModelSize {
  std::int64_t parameters = 0;     // trained ones
  std::size_t layers = 0;          // with trained parameters
  std::int64_t forward_flops = 0;  // per sample, without auxiliary heads; see count_flops()
};

struct ModelEntry {
  std::string name;
  std::string description;
  SampleForm form;  // of the samples that it was made for
  // The smallest side of an image, or the shortest sentence, that it supports; none: it supports
  // only the shape above.
  std::optional<std::int64_t> smallest;
  ModelSize size;
  std::function<std::unique_ptr<Network>(const SampleForm&)> make;
};

// All built-in models. Every new model gets an entry here.
std::vector<ModelEntry> model_table();

}  // namespace sluice
