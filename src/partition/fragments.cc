#include "partition/fragments.h"

#include <algorithm>
#include <numeric>

namespace sluice {

std::vector<std::int64_t> fragments_of(const ChunkMap& chunks, std::int64_t fragments) {
  std::vector<std::int64_t> params(chunks.layers());
  const auto layer_of = [&](std::size_t chunk) {
    return chunks.layers_of(ChunkId(chunk)).front().index();
  };
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    params[layer_of(c)] += chunks[ChunkId(c)].range.size();
  }
  std::vector<std::size_t> layers(params.size());
  std::iota(layers.begin(), layers.end(), std::size_t{0});
  std::ranges::stable_sort(layers,
                           [&](std::size_t a, std::size_t b) { return params[a] > params[b]; });
  std::vector<std::int64_t> dealt(static_cast<std::size_t>(fragments));
  std::vector<std::int64_t> of_layer(params.size());
  for (const std::size_t layer : layers) {
    const auto fewest = std::ranges::min_element(dealt);
    *fewest += params[layer];
    of_layer[layer] = fewest - dealt.begin();
  }
  std::vector<std::int64_t> of_chunk;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    of_chunk.push_back(of_layer[layer_of(c)]);
  }
  return of_chunk;
}

}  // namespace sluice
