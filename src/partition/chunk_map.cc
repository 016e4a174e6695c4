#include "partition/chunk_map.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

class RoundRobin {
 public:
  explicit RoundRobin(std::size_t servers) : servers_(servers) {}
  std::uint32_t next() { return static_cast<std::uint32_t>(turn_++ % servers_); }

 private:
  std::size_t servers_;
  std::size_t turn_ = 0;
};

// The layers from `first` on that together have at most so many parameters; at least one.
LayerGroup joined_from(std::span<const Layer> layers, std::size_t first, std::int64_t limit) {
  const std::int64_t begin = layers[first].range.begin;
  std::size_t end = first + 1;
  while (end < layers.size() && layers[end].range.end - begin <= limit) {
    ++end;
  }
  return {first, end};
}

// All parameters of some neighbouring layers, with the urgency of the first that has any; empty if
// none has.
Chunk chunk_of(std::span<const Layer> layers, const LayerGroup& group) {
  std::size_t urgent = group.begin;
  while (urgent + 1 < group.end && layers[urgent].range.empty()) {
    ++urgent;
  }
  return {{layers[urgent].range.begin, layers[group.end - 1].range.end},
          static_cast<std::uint32_t>(urgent)};
}

// PowerSGD: the factors of the matrix at the beginning of its range, which they fill at most half;
// what its layer has before and after it.
void cut_matrix(const Layer& layer, std::uint32_t priority, std::int64_t rank,
                std::vector<Chunk>& chunks) {
  const Matrix& matrix = layer.matrix;
  const std::int64_t right = matrix.begin + matrix.rows * rank;
  const std::int64_t rest = right + matrix.columns * rank;
  for (const Chunk& chunk : {Chunk{{layer.range.begin, matrix.begin}, priority},
                             Chunk{{matrix.begin, right}, priority, 0, Factor::kLeft},
                             Chunk{{right, rest}, priority, 0, Factor::kRight},
                             Chunk{{rest, matrix.range().end}, priority, 0, Factor::kRest},
                             Chunk{{matrix.range().end, layer.range.end}, priority}}) {
    if (!chunk.range.empty()) {
      chunks.push_back(chunk);
    }
  }
}

// Each layer is a chunk, and so are tiny layers together, unless the codec factors their matrices.
std::vector<Chunk> cut_layers(std::span<const Layer> layers, std::size_t servers,
                              const Strategy& strategy, std::int64_t join_params) {
  RoundRobin deal(servers);
  std::vector<Chunk> chunks;
  const auto factored = [&](const Layer& layer) { return strategy.factors(layer.matrix); };
  for (std::size_t l = 0; l < layers.size();) {
    if (factored(layers[l])) {
      cut_matrix(layers[l], static_cast<std::uint32_t>(l), strategy.power_rank, chunks);
      ++l;
      continue;
    }
    const auto end =
        std::find_if(layers.begin() + static_cast<std::ptrdiff_t>(l), layers.end(), factored);
    const LayerGroup group = joined_from({layers.begin(), end}, l, join_params);
    if (Chunk chunk = chunk_of(layers, group); !chunk.range.empty()) {
      chunk.server = deal.next();
      chunks.push_back(chunk);
    }
    l = group.end;
  }
  return chunks;
}

std::vector<Chunk> cut_whole(std::span<const Layer> layers, std::size_t servers) {
  const Range all{0, layers.empty() ? 0 : layers.back().range.end};
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < servers; ++s) {
    const Range part =
        part_of(all, static_cast<std::int64_t>(servers), static_cast<std::int64_t>(s));
    if (!part.empty()) {
      chunks.push_back({part, 0, static_cast<std::uint32_t>(s)});
    }
  }
  return chunks;
}

// MXNet's KVStore: a hash assigns a small layer to one server; a large layer is split evenly over
// all servers.
std::vector<Chunk> cut_kvstore(std::span<const Layer> layers, std::size_t servers,
                               const Strategy& strategy) {
  std::vector<Chunk> chunks;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Range range = layers[l].range;
    const auto priority = static_cast<std::uint32_t>(l);
    if (range.size() < strategy.kvstore_split_params) {
      if (!range.empty()) {
        const auto server = Random(strategy.seed, l).below(servers);
        chunks.push_back({range, priority, static_cast<std::uint32_t>(server)});
      }
      continue;
    }
    for (std::size_t s = 0; s < servers; ++s) {
      const Range part =
          part_of(range, static_cast<std::int64_t>(servers), static_cast<std::int64_t>(s));
      if (!part.empty()) {
        chunks.push_back({part, priority, static_cast<std::uint32_t>(s)});
      }
    }
  }
  return chunks;
}

// P3: slices of at most slice_params parameters, dealt over the servers in turn; tiny layers
// together are one slice.
std::vector<Chunk> cut_slices(std::span<const Layer> layers, std::size_t servers,
                              const Strategy& strategy) {
  check(strategy.slice_params > 0, "a slice needs at least one parameter");
  RoundRobin deal(servers);
  std::vector<Chunk> chunks;
  const std::int64_t limit = std::min(strategy.join_params, strategy.slice_params);
  for (std::size_t l = 0; l < layers.size();) {
    const LayerGroup group = joined_from(layers, l, limit);
    const Chunk whole = chunk_of(layers, group);
    const Range& range = whole.range;
    for (std::int64_t begin = range.begin; begin < range.end; begin += strategy.slice_params) {
      const Range slice{begin, std::min(begin + strategy.slice_params, range.end)};
      chunks.push_back({slice, whole.priority, deal.next()});
    }
    l = group.end;
  }
  return chunks;
}

// MG-WFBP: groups come in the order of sending, last layers first.
std::vector<Chunk> cut_merged(std::span<const Layer> layers, std::size_t servers,
                              std::span<const LayerGroup> groups) {
  RoundRobin deal(servers);
  std::vector<Chunk> chunks;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if (Chunk chunk = chunk_of(layers, *group); !chunk.range.empty()) {
      chunk.server = deal.next();
      chunks.push_back(chunk);
    }
  }
  return chunks;
}

}  // namespace

ChunkMap::ChunkMap(std::span<const Layer> layers, std::vector<Chunk> chunks)
    : chunks_(std::move(chunks)), chunks_of_(layers.size()) {
  std::size_t layer = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Range range = chunks_[c].range;
    const std::size_t before = layers_of_.size();
    first_layer_.push_back(static_cast<std::uint32_t>(before));
    while (layer < layers.size() && layers[layer].range.end <= range.begin) {
      ++layer;
    }
    for (std::size_t l = layer; l < layers.size() && layers[l].range.begin < range.end; ++l) {
      if (!layers[l].range.empty()) {
        chunks_of_[l].push_back(ChunkId(c));
        layers_of_.push_back(LayerId(l));
      }
    }
    check(layers_of_.size() > before, "a chunk lies inside the layers");
  }
  first_layer_.push_back(static_cast<std::uint32_t>(layers_of_.size()));
  for (const Chunk& chunk : chunks_) {
    if (chunk.server >= per_server_.size()) {
      per_server_.resize(chunk.server + 1);
    }
    places_.push_back(per_server_[chunk.server]++);
  }
}

ChunkMap make_chunks(std::span<const Layer> layers, std::size_t servers, const Strategy& strategy,
                     std::span<const LayerGroup> groups) {
  check(servers > 0, "there is a server, or one channel for all");
  switch (strategy.partition) {
    case Partition::kLayer:
      return {layers, cut_layers(layers, servers, strategy, strategy.join_params)};
    case Partition::kWhole:
      return {layers, cut_whole(layers, servers)};
    case Partition::kKvstore:
      return {layers, cut_kvstore(layers, servers, strategy)};
    case Partition::kSlice:
      return {layers, cut_slices(layers, servers, strategy)};
    case Partition::kMerged:
      return {layers, groups.empty() ? cut_layers(layers, servers, strategy, 0)
                                     : cut_merged(layers, servers, groups)};
  }
  fail_check("every partition is handled");
}

}  // namespace sluice
