#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/range.h"
#include "model/layer.h"
#include "model/strategy.h"

namespace sluice {

// Codec powersgd: what a chunk of a factored matrix holds while it is exchanged. The rest is not.
enum class Factor : std::uint8_t { kNone, kLeft, kRight, kRest };

// What is exchanged as a unit: a slice of a layer, a layer, or several layers.
struct Chunk {
  Range range;
  std::uint32_t priority = 0;  // of its most urgent layer
  std::uint32_t server = 0;    // index of the server that keeps it
  Factor factor = Factor::kNone;
};

// Maps layers to their chunks and back. Chunks tile the parameters in ascending order; layers
// without parameters have no chunk.
class ChunkMap {
 public:
  ChunkMap(std::span<const Layer> layers, std::vector<Chunk> chunks);

  std::size_t size() const { return chunks_.size(); }
  std::size_t layers() const { return chunks_of_.size(); }
  const Chunk& operator[](ChunkId id) const { return chunks_[id.index()]; }
  std::span<const Chunk> all() const { return chunks_; }
  // Its place among the chunks of its server, from 0.
  std::size_t place_at_server(ChunkId id) const { return places_[id.index()]; }
  std::size_t size_at_server(std::size_t server) const {
    return server < per_server_.size() ? per_server_[server] : 0;
  }

  std::span<const ChunkId> chunks_of(LayerId layer) const { return chunks_of_[layer.index()]; }
  std::span<const LayerId> layers_of(ChunkId chunk) const {
    return std::span(layers_of_)
        .subspan(first_layer_[chunk.index()],
                 first_layer_[chunk.index() + 1] - first_layer_[chunk.index()]);
  }

 private:
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> per_server_;
  std::vector<std::vector<ChunkId>> chunks_of_;
  std::vector<LayerId> layers_of_;          // of all chunks, one after the other
  std::vector<std::uint32_t> first_layer_;  // by chunk: where its layers begin there; and the end
};

// Cuts the layers as the strategy says and deals the chunks over the servers. Only partition merged
// uses the groups: in the order of sending, with every layer that has parameters. Without groups
// each layer is a chunk.
ChunkMap make_chunks(std::span<const Layer> layers, std::size_t servers, const Strategy& strategy,
                     std::span<const LayerGroup> groups = {});

}  // namespace sluice
