#include "data/micro_batches.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(MicroBatchesTest, PartsAreNearlyEqualAndCountByTheirLabels) {
  Batch batch;
  batch.shape = {5, 2};
  batch.labels = {1, kNoLabel, 2, 3, 4, 5, 6, 7, kNoLabel, kNoLabel};  // two per sample
  const std::vector<MicroBatch> parts = micro_batches_of(batch, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].samples, (Range{0, 2}));
  EXPECT_EQ(parts[0].labels, (Range{0, 4}));
  EXPECT_EQ(parts[1].samples, (Range{2, 4}));
  EXPECT_EQ(parts[2].samples, (Range{4, 5}));
  EXPECT_EQ(parts[2].labels, (Range{8, 10}));
  EXPECT_DOUBLE_EQ(parts[0].share, 3.0 / 7);
  EXPECT_DOUBLE_EQ(parts[1].share, 4.0 / 7);
  EXPECT_EQ(parts[2].share, 0);
}

TEST(MicroBatchesTest, ThereIsASampleInEach) {
  Batch batch;
  batch.shape = {2, 7};
  batch.labels = {0, 1};
  EXPECT_EQ(micro_batches_of(batch, 5).size(), 2U);
  const std::vector<MicroBatch> whole = micro_batches_of(batch, 1);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].samples, (Range{0, 2}));
  EXPECT_EQ(whole[0].labels, (Range{0, 2}));
  EXPECT_EQ(whole[0].share, 1);
}

}  // namespace
}  // namespace sluice
