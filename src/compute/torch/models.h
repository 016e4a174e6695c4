#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/torch/network.h"

namespace sluice {

struct ModelEntry {
  std::string name;
  std::string description;
  std::vector<std::int64_t> input_shape;  // of one sample
  std::function<std::unique_ptr<Network>(std::int64_t classes)> make;
};

// All built-in models; a model in a file of its own gets a line here.
std::vector<ModelEntry> model_table();

}  // namespace sluice
