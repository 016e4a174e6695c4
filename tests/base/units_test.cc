#include "base/units.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

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

TEST(UnitsTest, WhatIsTooLongBecomesForever) {
  EXPECT_EQ(from_us(1e30), kForever);
  EXPECT_EQ(from_ns(1e19), kForever);
  EXPECT_EQ(from_ns(-1e30), -kForever);
  EXPECT_EQ(from_us(std::numeric_limits<double>::infinity()), kForever);
  EXPECT_EQ(from_us(std::numeric_limits<double>::quiet_NaN()), kForever);
  EXPECT_GT(kForever + kForever + kForever, kForever) << "a few can be added";
  const Duration longest_exact = from_us(86'400e6);
  EXPECT_EQ(longest_exact, std::chrono::hours(24));
}

}  // namespace
}  // namespace sluice
