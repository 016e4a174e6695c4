#include "data/coloured_clothes.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

DataSet some_clothes(std::int64_t count) {
  DataSet set;
  set.sample_shape = {1, 28, 28};
  set.classes = 10;
  for (std::int64_t s = 0; s < count; ++s) {
    set.labels.push_back(s % 10);
    for (int p = 0; p < 28 * 28; ++p) {
      set.features.push_back(p == 0 ? 1.0F : 0.0F);
    }
  }
  return set;
}

TEST(ColouredClothes, AreKindsTimesColoursInAMargin) {
  const DataSplit split = coloured({some_clothes(200), some_clothes(20)});
  EXPECT_EQ(split.train.size(), 200);
  EXPECT_EQ(split.train.classes, 100);
  EXPECT_EQ(split.test.sample_shape, (std::vector<std::int64_t>{3, 32, 32}));
  std::set<std::int64_t> colours;
  for (std::int64_t s = 0; s < 200; ++s) {
    const std::int64_t label = split.train.labels[static_cast<std::size_t>(s)];
    EXPECT_EQ(label / 10, s % 10);
    colours.insert(label % 10);
    // The one bright pixel is two rows and columns further in, and only it differs from the margin.
    const auto sample = split.train.sample(s);
    EXPECT_GT(sample[2 * 32 + 2], sample[0]);
    EXPECT_EQ(sample[2 * 32 + 3], sample[0]);
  }
  EXPECT_EQ(colours.size(), 10U);
}

TEST(ColouredClothes, AreTheSameAgain) {
  const DataSplit clothes{some_clothes(30), some_clothes(3)};
  EXPECT_EQ(coloured(clothes).train.features, coloured(clothes).train.features);
  EXPECT_EQ(coloured(clothes).train.labels, coloured(clothes).train.labels);
}

}  // namespace
}  // namespace sluice
