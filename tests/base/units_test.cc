#include "base/units.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(UnitsTest, ConvertBothWays) {
  EXPECT_EQ(from_us(1.5), Duration(1'500'000));
  EXPECT_EQ(from_ns(0.1), Duration(100));
  EXPECT_DOUBLE_EQ(to_us(Duration(2'500'000)), 2.5);
  EXPECT_DOUBLE_EQ(to_seconds(Duration(3'000'000'000'000)), 3.0);
}

TEST(UnitsTest, RoundToTheNearestPicosecond) {
  EXPECT_EQ(from_us(1e-6 * 1.6), Duration(2));
  EXPECT_EQ(from_us(1e-6 * 1.4), Duration(1));
}

}  // namespace
}  // namespace sluice
