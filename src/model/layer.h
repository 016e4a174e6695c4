#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/range.h"

namespace sluice {

// A layer owns a range of the flat parameter buffer. Layers stand in the order of first use by the
// forward pass; that order is also their priority, the first being the most urgent.
struct Layer {
  std::string name;
  Range range;
};

// The layers begin ... end-1, in forward order, whose gradients travel as one message.
struct LayerGroup {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const LayerGroup&) const = default;
};

// The layers side by side in one flat buffer.
std::vector<Layer> lay_out(const std::vector<std::string>& names,
                           const std::vector<std::int64_t>& params);

std::int64_t total_params(const std::vector<Layer>& layers);

}  // namespace sluice
