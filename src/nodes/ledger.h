#pragma once

#include <cstdint>
#include <vector>

#include "partition/chunk_map.h"

namespace sluice {

// Counts down one group of things to another: layers whose gradients complete a chunk, or chunks
// whose parameters complete a layer. A count that reaches zero starts over for the next iteration.
class Countdown {
 public:
  explicit Countdown(std::vector<std::uint32_t> needed)
      : needed_(std::move(needed)), left_(needed_) {}

  // True when this was the last one missing.
  bool arrive(std::size_t index) {
    if (--left_[index] > 0) {
      return false;
    }
    left_[index] = needed_[index];
    return true;
  }

 private:
  std::vector<std::uint32_t> needed_;
  std::vector<std::uint32_t> left_;
};

inline Countdown layers_per_chunk(const ChunkMap& chunks) {
  std::vector<std::uint32_t> needed(chunks.size());
  for (std::size_t c = 0; c < needed.size(); ++c) {
    needed[c] = static_cast<std::uint32_t>(chunks.layers_of(ChunkId(c)).size());
  }
  return Countdown(std::move(needed));
}

inline Countdown chunks_per_layer(const ChunkMap& chunks) {
  std::vector<std::uint32_t> needed(chunks.layers());
  for (std::size_t l = 0; l < needed.size(); ++l) {
    needed[l] = static_cast<std::uint32_t>(chunks.chunks_of(LayerId(l)).size());
  }
  return Countdown(std::move(needed));
}

}  // namespace sluice
