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

// What a model has with the samples that it was made for. It is kept here, and held to the truth by
// a test, because to find it out takes seconds a model.
struct ModelSize {
  std::int64_t parameters = 0;     // that are trained
  std::size_t layers = 0;          // that have any
  std::int64_t forward_flops = 0;  // of one sample without auxiliary heads, see count_flops()
};

struct ModelEntry {
  std::string name;
  std::string description;
  SampleForm form;  // of the samples that it was made for
  // The shortest side of an image, or the shortest sentence, that it can do with; none: it takes
  // the shape above and no other.
  std::optional<std::int64_t> smallest;
  ModelSize size;
  std::function<std::unique_ptr<Network>(const SampleForm&)> make;
};

// All built-in models; a model in a file of its own gets a line here.
std::vector<ModelEntry> model_table();

}  // namespace sluice
