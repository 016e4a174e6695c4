#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/data/dataset.h"
#include "compute/torch/network.h"

namespace sluice {

struct ModelEntry {
  std::string name;
  std::string description;
  SampleForm form;  // of the samples that it was made for
  // The shortest side of an image, or the shortest sentence, that it can do with; none: it takes
  // the shape above and no other.
  std::optional<std::int64_t> smallest;
  std::function<std::unique_ptr<Network>(const SampleForm&)> make;
};

// All built-in models; a model in a file of its own gets a line here.
std::vector<ModelEntry> model_table();

}  // namespace sluice
