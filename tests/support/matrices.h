#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/layer.h"

namespace sluice::testing {

// A nearly square matrix in a layer of so many parameters, with others before and behind it. Its
// begin counts from that of the layer. A short layer has none.
inline Matrix some_matrix(std::int64_t params) {
  if (params < 30) {
    return {};
  }
  const auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(params - 2)));
  return {1, rows, (params - 2) / rows};
}

inline std::vector<Layer> with_matrices(std::vector<Layer> layers) {
  for (Layer& layer : layers) {
    layer.matrix = some_matrix(layer.range.size());
    layer.matrix.begin += layer.range.begin;
  }
  return layers;
}

}  // namespace sluice::testing
