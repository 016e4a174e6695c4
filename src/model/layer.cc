#include "model/layer.h"

#include "base/check.h"

namespace sluice {

std::vector<Layer> lay_out(const std::vector<std::string>& names,
                           const std::vector<std::int64_t>& params) {
  check(names.size() == params.size(), "one name for each layer");
  std::vector<Layer> layers;
  layers.reserve(names.size());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    layers.push_back({names[i], {offset, offset + params[i]}});
    offset += params[i];
  }
  return layers;
}

std::int64_t total_params(const std::vector<Layer>& layers) {
  return layers.empty() ? 0 : layers.back().range.end;
}

}  // namespace sluice
