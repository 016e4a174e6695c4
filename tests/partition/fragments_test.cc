#include "partition/fragments.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice {
namespace {

ChunkMap fragmented(const std::vector<std::int64_t>& params, Partition partition) {
  std::vector<std::string> names(params.size(), "layer");
  Strategy strategy;
  strategy.partition = partition;
  strategy.slice_params = 7;
  return make_chunks(lay_out(names, params), 1, strategy);
}

TEST(Fragments, LargeLayersGoApart) {
  const ChunkMap chunks = fragmented({10, 50, 0, 20, 15}, Partition::kLayer);
  EXPECT_EQ(fragments_of(chunks, 2), (std::vector<std::int64_t>{1, 0, 1, 1}));
  EXPECT_EQ(fragments_of(chunks, 1), (std::vector<std::int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(fragments_of(fragmented({10, 50}, Partition::kWhole), 3), std::vector<std::int64_t>{0});
}

RC_GTEST_PROP(Fragments, AreEvenAndHoldWholeLayers, ()) {
  const auto params = *rc::gen::nonEmpty<std::vector<std::int64_t>>(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 60)));
  const auto fragments = *rc::gen::inRange<std::int64_t>(1, 6);
  const ChunkMap chunks = fragmented(params, Partition::kSlice);
  const auto dealt = fragments_of(chunks, fragments);
  RC_ASSERT(dealt.size() == chunks.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(fragments));
  for (std::size_t l = 0; l < chunks.layers(); ++l) {
    for (const ChunkId chunk : chunks.chunks_of(LayerId(l))) {
      const std::int64_t fragment = dealt[chunk.index()];
      RC_ASSERT(fragment >= 0 && fragment < fragments);
      RC_ASSERT(fragment == dealt[chunks.chunks_of(LayerId(l)).front().index()]);
      sizes[static_cast<std::size_t>(fragment)] += chunks[chunk].range.size();
    }
  }
  const auto [min, max] = std::ranges::minmax(sizes);
  RC_ASSERT(max - min <= *std::ranges::max_element(params));
}

}  // namespace
}  // namespace sluice
