#include "report/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A linear axis begins at 0 and ends at its largest value: 70 to 470, and from 306 up to 16.
TEST(LineChart, PlacesPointsOnLinearAxes) {
  const std::string svg =
      to_svg({.x_title = "hosts",
              .y_title = "ms",
              .lines = {{.name = "p3", .points = {{1, 10}, {2, 20}, {4, 40}}}}});
  EXPECT_THAT(svg, HasSubstr("points=\"170.0,233.5 270.0,161.0 470.0,16.0 \""));
  EXPECT_THAT(svg, HasSubstr(">hosts</text>"));
  EXPECT_THAT(svg, HasSubstr(">p3</text>"));
}

// Each factor of ten is half of an axis from 1 to 100.
TEST(LineChart, IsLogarithmicOverLargeFactors) {
  const std::string svg = to_svg({.x_title = "x",
                                  .y_title = "y",
                                  .lines = {{.name = "", .points = {{1, 5}, {10, 5}, {100, 5}}}}});
  EXPECT_THAT(svg, HasSubstr("points=\"70.0,16.0 270.0,16.0 470.0,16.0 \""));
  for (const char* tick : {">1<", ">2<", ">5<", ">10<", ">50<", ">100<"}) {
    EXPECT_THAT(svg, HasSubstr(tick));
  }
}

// From 40 to 90: a fifth and the whole of the height.
TEST(LineChart, IsLinearFromWhereItIsToBe) {
  const std::string svg = to_svg({.x_title = "epochs",
                                  .y_title = "%",
                                  .lines = {{.name = "p3", .points = {{0.1, 50}, {10, 90}}}},
                                  .linear = true,
                                  .y_from = 40});
  EXPECT_THAT(svg, HasSubstr("points=\"74.0,248.0 470.0,16.0 \""));
  EXPECT_THAT(svg, HasSubstr(">40</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">30</text>")));
}

TEST(LineChart, EscapesNames) {
  const std::string svg = to_svg(
      {.x_title = "<x>", .y_title = "y", .lines = {{.name = "a & b", .points = {{1, 1}, {2, 2}}}}});
  EXPECT_THAT(svg, HasSubstr("&lt;x&gt;"));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, Not(HasSubstr("<x>")));
}

}  // namespace
}  // namespace sluice
