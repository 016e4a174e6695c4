#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/layer.h"

namespace sluice {

struct ParameterSize {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t rows = 0;  // its first dimension, if it has more than one
};

// Where each parameter of a network lies in the flat buffer. A layer is what one module owns: the
// parameters whose names agree up to the last dot. They are contiguous. Its matrix is the largest
// of them that has several rows and columns.
struct Layout {
  std::vector<Layer> layers;
  std::vector<std::size_t> order;  // the network's parameters in the order of the flat buffer
  std::vector<LayerId> layer_of;   // by index in that order
};

// `reads` are the indices of the parameters in the order in which a forward pass reads them, with
// repetitions. Layers are ordered by their first read; those never read come last.
Layout make_layout(const std::vector<ParameterSize>& parameters,
                   const std::vector<std::size_t>& reads);

}  // namespace sluice
