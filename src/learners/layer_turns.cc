#include "learners/layer_turns.h"

#include <algorithm>

#include "partition/fragments.h"

namespace sluice {

LayerTurns::LayerTurns(const Cadence& cadence, const ChunkMap& chunks)
    : cadence_(cadence), fragments_(chunks.layers()) {
  const std::vector<std::int64_t> of_chunk = fragments_of(chunks, cadence.fragments);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (const LayerId layer : chunks.layers_of(ChunkId(c))) {
      std::vector<std::int64_t>& fragments = fragments_[layer.index()];
      if (std::ranges::find(fragments, of_chunk[c]) == fragments.end()) {
        fragments.push_back(of_chunk[c]);
      }
    }
  }
}

bool LayerTurns::meets_at(LayerId layer, Iteration iteration) const {
  const auto begins = [&](std::int64_t fragment) {
    return cadence_.begins_at(iteration, fragment);
  };
  return ends_at(layer, iteration) || std::ranges::any_of(fragments_[layer.index()], begins);
}

bool LayerTurns::ends_at(LayerId layer, Iteration iteration) const {
  return std::ranges::any_of(fragments_[layer.index()], [&](std::int64_t fragment) {
    return cadence_.begins_at(iteration - cadence_.delay, fragment);
  });
}

}  // namespace sluice
