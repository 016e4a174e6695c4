#include "report/names.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(NamesTest, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kMessageKinds; ++kind) {
    names.insert(name_of(static_cast<MessageKind>(kind)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kMessageKinds));
  EXPECT_FALSE(names.contains("?"));
}

TEST(NamesTest, NodesAreNamedByTheirRole) {
  const Topology topology(2, 2, 1);
  EXPECT_EQ(name_of(NodeId(3), topology), "worker 3");
  EXPECT_EQ(name_of(NodeId(4), topology), "server 0");
}

TEST(NamesTest, ChunksAreNamedByTheirLayers) {
  const auto layers = lay_out({"conv", "none", "fc"}, {2, 0, 6});
  Strategy strategy;
  strategy.partition = Partition::kSlice;
  strategy.slice_params = 3;
  const auto slices = chunk_names(layers, make_chunks(layers, 1, strategy));
  EXPECT_EQ(slices(ChunkId(0)), "conv");
  EXPECT_EQ(slices(ChunkId(1)), "fc/0");
  EXPECT_EQ(slices(ChunkId(2)), "fc/1");
  strategy.partition = Partition::kWhole;
  EXPECT_EQ(chunk_names(layers, make_chunks(layers, 1, strategy))(ChunkId(0)), "conv..fc");
}

}  // namespace
}  // namespace sluice
