#include "report/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(Scale, BeginsAtZeroOrFits) {
  const Scale zero = Scale::over(1, 4, Scale::Kind::kFromZero);
  EXPECT_THAT(zero.ticks(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(std::signbit(zero.ticks().front()));
  EXPECT_DOUBLE_EQ(zero.place(1), 0.25);
  const Scale fitted = Scale::over(82.5, 91, Scale::Kind::kFitted);
  EXPECT_THAT(fitted.ticks(), ElementsAre(82, 84, 86, 88, 90, 92));
  EXPECT_DOUBLE_EQ(fitted.place(87), 0.5);
  const Scale exact = Scale::over(0.5, 10.5, Scale::Kind::kExact);
  EXPECT_THAT(exact.ticks(), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_DOUBLE_EQ(exact.place(10.5), 1);
}

TEST(Scale, IsLogarithmicOverLargeFactorsIfItMay) {
  const Scale scale = Scale::over(1, 100, Scale::Kind::kAuto);
  EXPECT_THAT(scale.ticks(), Pointwise(DoubleNear(1e-9), {1, 2, 5, 10, 20, 50, 100}));
  EXPECT_DOUBLE_EQ(scale.place(10), 0.5);
  EXPECT_DOUBLE_EQ(Scale::over(1, 100, Scale::Kind::kFromZero).place(10), 0.1);
  EXPECT_DOUBLE_EQ(Scale::over(0, 100, Scale::Kind::kAuto).place(10), 0.1);
}

TEST(Scale, HasRoomAroundASingleValue) {
  for (const double value : {0.0, 3.5, -2.0, 1e9}) {
    const Scale scale = Scale::over(value, value, Scale::Kind::kFitted);
    EXPECT_GE(scale.ticks().size(), 2U) << value;
  }
}

TEST(Scale, LabelsAreShort) {
  EXPECT_EQ(tick_label(0.25), "0.25");
  EXPECT_EQ(tick_label(2000), "2000");
  EXPECT_EQ(tick_label(20000), "20k");
  EXPECT_EQ(tick_label(1.5e6), "1.5M");
  EXPECT_EQ(tick_label(-3e9), "-3G");
}

RC_GTEST_PROP(Scale, HoldsItsValuesAndTicksInOrder, ()) {
  const auto value = [] {
    return *rc::gen::map(rc::gen::inRange<std::int64_t>(-1'000'000, 1'000'000), [](std::int64_t i) {
      return static_cast<double>(i) / 997;
    }) * std::pow(10, *rc::gen::inRange(-6, 9));
  };
  double min = value();
  double max = value();
  if (min > max) {
    std::swap(min, max);
  }
  const auto kind = *rc::gen::element(Scale::Kind::kAuto, Scale::Kind::kFitted,
                                      Scale::Kind::kFromZero, Scale::Kind::kExact);
  const Scale scale = Scale::over(min, max, kind);
  RC_ASSERT(scale.place(min) >= 0 && scale.place(max) <= 1);
  RC_ASSERT(scale.place(min) <= scale.place(max));
  const std::vector<double> ticks = scale.ticks();
  RC_ASSERT(ticks.size() >= 2 && ticks.size() <= 12);
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    RC_ASSERT(ticks[i - 1] < ticks[i]);
    RC_ASSERT(scale.place(ticks[i - 1]) < scale.place(ticks[i]));
  }
}

}  // namespace
}  // namespace sluice
