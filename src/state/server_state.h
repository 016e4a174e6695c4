#pragma once

#include <span>

#include "base/zeroed_buffer.h"
#include "partition/chunk_map.h"

namespace sluice {

// A server's copy of the parameters of its shard; the rest stays zero and takes no memory.
inline ZeroedBuffer server_parameters(std::span<const float> initial, const ChunkMap& chunks,
                                      std::size_t server) {
  ZeroedBuffer buffer(initial.size());
  for (const Chunk& chunk : chunks.all()) {
    if (chunk.server == server) {
      const auto begin = static_cast<std::size_t>(chunk.range.begin);
      const auto size = static_cast<std::size_t>(chunk.range.size());
      std::copy_n(initial.data() + begin, size, buffer.values().data() + begin);
    }
  }
  return buffer;
}

}  // namespace sluice
