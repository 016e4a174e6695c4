#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "partition/chunk_map.h"

namespace sluice {

// Counts down one group of things to another: layers whose gradients complete a chunk, or chunks
// whose parameters complete a layer. A count that reaches zero starts over for the next iteration.
class Countdown {
 public:
  explicit Countdown(std::span<const std::uint32_t> needed) {
    if (std::ranges::all_of(needed, [](std::uint32_t count) { return count == 1; })) {
      return;  // as with slices: nothing to keep
    }
    for (const std::uint32_t count : needed) {
      counts_.push_back({count, count});
    }
  }

  // True when this was the last one missing.
  bool arrive(std::size_t index) {
    if (counts_.empty()) {
      return true;
    }
    Count& count = counts_[index];
    if (--count.left > 0) {
      return false;
    }
    count.left = count.needed;
    return true;
  }

 private:
  struct Count {
    std::uint32_t needed;
    std::uint32_t left;
  };

  std::vector<Count> counts_;  // none if each needs one
};

inline Countdown layers_per_chunk(const ChunkMap& chunks) {
  std::vector<std::uint32_t> needed(chunks.size());
  for (std::size_t c = 0; c < needed.size(); ++c) {
    needed[c] = static_cast<std::uint32_t>(chunks.layers_of(ChunkId(c)).size());
  }
  return Countdown(needed);
}

inline Countdown chunks_per_layer(const ChunkMap& chunks) {
  std::vector<std::uint32_t> needed(chunks.layers());
  for (std::size_t l = 0; l < needed.size(); ++l) {
    needed[l] = static_cast<std::uint32_t>(chunks.chunks_of(LayerId(l)).size());
  }
  return Countdown(needed);
}

}  // namespace sluice
