#include "report/spread.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

TEST(Spread, IsTheMeanAndTheStandardDeviationOfASample) {
  const Spread three = Spread::of(std::array{88.0, 90.0, 92.0});
  EXPECT_DOUBLE_EQ(three.mean, 90);
  EXPECT_DOUBLE_EQ(three.deviation, 2);
  EXPECT_EQ(three.text(1), "90.0 ± 2.0");
  EXPECT_EQ(Spread::of(std::array{7.25}).text(2), "7.25");
}

}  // namespace
}  // namespace sluice
