#include "partition/chunk_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/generators.h"

namespace sluice {
namespace {

std::vector<Layer> layers_of(const std::vector<std::int64_t>& params) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < params.size(); ++i) {
    names.push_back("L" + std::to_string(i));
  }
  return lay_out(names, params);
}

RC_GTEST_PROP(ChunkMapProperties, ChunksTileTheLayers, ()) {
  const auto layers = layers_of(
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(testing::between(0, 3000))));
  Strategy strategy = testing::any_strategy();
  strategy.partition = *rc::gen::element(Partition::kLayer, Partition::kWhole, Partition::kKvstore,
                                         Partition::kSlice);
  const auto servers = static_cast<std::size_t>(*testing::between(1, 9));
  const ChunkMap chunks = make_chunks(layers, servers, strategy);
  std::int64_t end = 0;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[ChunkId(c)];
    RC_ASSERT(chunk.range.begin == end);
    RC_ASSERT(!chunk.range.empty());
    RC_ASSERT(chunk.server < servers);
    end = chunk.range.end;
    // A chunk touches exactly the layers whose ranges overlap its own, and they list it.
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Range layer = layers[l].range;
      const bool meets =
          std::max(layer.begin, chunk.range.begin) < std::min(layer.end, chunk.range.end);
      const auto of_chunk = chunks.layers_of(ChunkId(c));
      const auto of_layer = chunks.chunks_of(LayerId(l));
      RC_ASSERT(meets == (std::count(of_chunk.begin(), of_chunk.end(), LayerId(l)) == 1));
      RC_ASSERT(meets == (std::count(of_layer.begin(), of_layer.end(), ChunkId(c)) == 1));
      RC_ASSERT(!meets || l >= chunk.priority);
    }
  }
  RC_ASSERT(end == total_params(layers));
}

TEST(ChunkMap, AMatrixIsItsFactorsAndTheRest) {
  std::vector<Layer> layers = layers_of({10, 130, 5, 7});
  layers[1].matrix = {20, 10, 11};
  layers[2].matrix = {140, 1, 5};
  Strategy strategy;
  strategy.partition = Partition::kLayer;
  strategy.codec = Codec::kPowerSgd;
  strategy.power_rank = 2;
  strategy.join_params = 12;
  const ChunkMap chunks = make_chunks(layers, 1, strategy);
  const std::vector<std::pair<Range, Factor>> expected{
      {{0, 10}, Factor::kNone},    {{10, 20}, Factor::kNone},  {{20, 40}, Factor::kLeft},
      {{40, 62}, Factor::kRight},  {{62, 130}, Factor::kRest}, {{130, 140}, Factor::kNone},
      {{140, 152}, Factor::kNone},
  };
  std::vector<std::pair<Range, Factor>> found;
  for (const Chunk& chunk : chunks.all()) {
    found.emplace_back(chunk.range, chunk.factor);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(chunks.chunks_of(LayerId(1)).size(), 5U);
  EXPECT_EQ(chunks[ChunkId(3)].priority, 1U);
  strategy.power_rank = 3;
  EXPECT_EQ(make_chunks(layers, 1, strategy).size(), 3U) << "factors would take too much";
}

// Tiny neighbours are one chunk, as many of them as the limit allows, and all of each.
RC_GTEST_PROP(ChunkMapProperties, TinyNeighboursAreJoined, ()) {
  const auto layers = layers_of(
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(testing::between(0, 300))));
  Strategy strategy;
  strategy.partition = *rc::gen::element(Partition::kLayer, Partition::kSlice);
  strategy.join_params = *testing::between(0, 400);
  strategy.slice_params = *testing::between(50, 500);
  const std::int64_t limit = strategy.partition == Partition::kLayer
                                 ? strategy.join_params
                                 : std::min(strategy.join_params, strategy.slice_params);
  const ChunkMap chunks = make_chunks(layers, 3, strategy);
  const auto is_whole = [&](std::size_t c) {
    const auto of = chunks.layers_of(ChunkId(c));
    return chunks[ChunkId(c)].range ==
           Range{layers[of.front().index()].range.begin, layers[of.back().index()].range.end};
  };
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const auto of = chunks.layers_of(ChunkId(c));
    const Chunk& chunk = chunks[ChunkId(c)];
    RC_ASSERT(chunk.priority == of.front().index());
    RC_ASSERT(of.size() == 1 || (is_whole(c) && chunk.range.size() <= limit));
    if (c + 1 < chunks.size() && is_whole(c) && is_whole(c + 1)) {
      const LayerId next = chunks.layers_of(ChunkId(c + 1)).front();
      RC_ASSERT(layers[next.index()].range.end - chunk.range.begin > limit);
    }
  }
}

TEST(ChunkMap, FiftyOneTinyLayersAreFewChunks) {
  Strategy strategy;
  const auto layers = layers_of(std::vector<std::int64_t>(51, 64));
  EXPECT_EQ(make_chunks(layers, 4, strategy).size(), 51U);
  strategy.join_params = 8192;
  EXPECT_EQ(make_chunks(layers, 4, strategy).size(), 1U);
  strategy.join_params = 562;
  EXPECT_EQ(make_chunks(layers, 4, strategy).size(), 7U);
}

TEST(ChunkMap, MergedLayersAreCutByTheirGroupsAndAloneWithoutThem) {
  Strategy strategy;
  strategy.partition = Partition::kMerged;
  const auto layers = layers_of({100, 0, 30, 5});
  EXPECT_EQ(make_chunks(layers, 1, strategy).size(), 3U);
  const std::vector<LayerGroup> groups{{2, 4}, {0, 2}};
  const ChunkMap chunks = make_chunks(layers, 1, strategy, groups);
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[ChunkId(0)].range, (Range{0, 100}));
  EXPECT_EQ(chunks[ChunkId(1)].range, (Range{100, 135}));
  EXPECT_EQ(chunks[ChunkId(1)].priority, 2U);
}

TEST(ChunkMap, SlicesAreDealtInTurnAndInheritTheirLayersPriority) {
  Strategy strategy;
  strategy.partition = Partition::kSlice;
  strategy.slice_params = 40;
  const ChunkMap chunks = make_chunks(layers_of({100, 30}), 3, strategy);
  ASSERT_EQ(chunks.size(), 4U);
  const std::vector<std::int64_t> sizes{40, 40, 20, 30};
  const std::vector<std::uint32_t> servers{0, 1, 2, 0};
  const std::vector<std::uint32_t> priorities{0, 0, 0, 1};
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(chunks[ChunkId(c)].range.size(), sizes[c]);
    EXPECT_EQ(chunks[ChunkId(c)].server, servers[c]);
    EXPECT_EQ(chunks[ChunkId(c)].priority, priorities[c]);
  }
}

TEST(ChunkMap, KvstoreSplitsOnlyLargeLayers) {
  Strategy strategy;
  strategy.partition = Partition::kKvstore;
  strategy.kvstore_split_params = 100;
  const ChunkMap chunks = make_chunks(layers_of({99, 100}), 4, strategy);
  EXPECT_EQ(chunks.chunks_of(LayerId(0)).size(), 1U);
  ASSERT_EQ(chunks.chunks_of(LayerId(1)).size(), 4U);
  for (std::size_t s = 0; s < 4; ++s) {
    const Chunk& part = chunks[chunks.chunks_of(LayerId(1))[s]];
    EXPECT_EQ(part.server, s);
    EXPECT_EQ(part.range.size(), 25);
  }
}

// The hash is seeded: another seed gives another placement, and all servers get a share.
TEST(ChunkMap, KvstoreSpreadsSmallLayersBySeed) {
  Strategy strategy;
  strategy.partition = Partition::kKvstore;
  const auto layers = layers_of(std::vector<std::int64_t>(400, 10));
  std::vector<std::vector<std::uint32_t>> placements;
  for (const std::uint64_t seed : {1U, 2U}) {
    strategy.seed = seed;
    auto& placement = placements.emplace_back();
    const ChunkMap chunks = make_chunks(layers, 4, strategy);
    for (const Chunk& chunk : chunks.all()) {
      placement.push_back(chunk.server);
    }
    for (std::uint32_t s = 0; s < 4; ++s) {
      EXPECT_GT(std::count(placement.begin(), placement.end(), s), 60);
    }
  }
  EXPECT_NE(placements[0], placements[1]);
}

}  // namespace
}  // namespace sluice
