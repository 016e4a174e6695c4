#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "model/strategy.h"
#include "nodes/validate.h"
#include "optimizers/optimizer.h"

namespace sluice {

// A named point of the space, as a paper or a system has it.
struct Preset {
  std::string_view name;
  Strategy strategy;
  std::string_view summary;
  std::string_view paper;
  double lr = 0.05;         // learning rate to begin with; stale gradients bear less
  std::size_t servers = 0;  // on hosts of their own; 0: beside the workers of every host
  Optimizer optimizer = Optimizer::kSgd;

  // The paper trains with it.
  double weight_decay() const { return paper == "Analysis" ? 1e-4 : 0; }
};

std::span<const Preset> presets();
// Null if there is none of that name.
const Preset* find_preset(std::string_view name);

}  // namespace sluice
