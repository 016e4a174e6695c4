#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/document.h"

namespace sluice::cli {

// How a paper trains: for how long, and with which optimiser.
struct Recipe {
  std::string_view name;
  std::int64_t epochs;
  std::int64_t batch;
  double lr;
  bool lr_scale_by_workers;
  double warmup_epochs;
  std::vector<std::int64_t> lr_decay_epochs;
  double momentum;
  double weight_decay;
};

// Null if there is none of that name.
const Recipe* find_recipe(std::string_view name);
// Its settings, with warm-up and decay in proportion to a run of so many epochs.
Json to_values(const Recipe& recipe, std::int64_t epochs);

}  // namespace sluice::cli
