#include "base/median.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(MedianTest, IsTheMiddleOrTheLargerOfTwo) {
  EXPECT_EQ(median_of<int>({7}), 7);
  EXPECT_EQ(median_of<int>({9, 1}), 9);
  EXPECT_EQ(median_of<int>({5, 1, 100}), 5);
}

TEST(MedianTest, TheSpreadLeavesOutAQuarterAtEachEnd) {
  EXPECT_EQ(interquartile_range<int>({4}), 0);
  EXPECT_EQ(interquartile_range<int>({4, 1}), 3);
  EXPECT_EQ(interquartile_range<int>({1000, 3, 2, 1}), 1);
  EXPECT_EQ(interquartile_range<int>({-50, 10, 12, 13, 14, 20, 999}), 10);
}

}  // namespace
}  // namespace sluice
