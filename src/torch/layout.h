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
};

// Where each parameter of a network stands in the flat buffer. A layer is what one module owns: the
// parameters whose names agree up to the last dot, side by side.
struct Layout {
  std::vector<Layer> layers;
  std::vector<std::size_t> order;  // the network's parameters in the order of the flat buffer
  std::vector<LayerId> layer_of;   // by place in that order
};

// `reads` are the parameters, by index, in the order in which a forward pass reads them, repeats
// included. Layers stand in the order of their first read, those never read come last.
Layout make_layout(const std::vector<ParameterSize>& parameters,
                   const std::vector<std::size_t>& reads);

}  // namespace sluice
