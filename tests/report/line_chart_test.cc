#include "report/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A linear axis begins at 0: 70 to 470, and from 306 up to 16.
TEST(LineChart, PlacesPointsOnLinearAxes) {
  const std::string svg =
      to_svg({.x_title = "hosts",
              .y_title = "ms",
              .lines = {{.name = "p3", .points = {{1, 10}, {2, 20}, {4, 40}}}}});
  EXPECT_THAT(svg, HasSubstr("points=\"170.0,233.5 270.0,161.0 470.0,16.0 \""));
  EXPECT_THAT(svg, HasSubstr(">hosts</text>"));
  EXPECT_THAT(svg, HasSubstr(">p3</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>ms by hosts</title>"));
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

TEST(LineChart, FitsItsValuesIfItIsTo) {
  const std::string svg = to_svg({.x_title = "epochs",
                                  .y_title = "%",
                                  .lines = {{.name = "p3", .points = {{0.1, 50}, {10, 90}}}},
                                  .x_scale = Scale::Kind::kFromZero,
                                  .y_scale = Scale::Kind::kFitted});
  EXPECT_THAT(svg, HasSubstr("points=\"74.0,306.0 470.0,16.0 \""));
  EXPECT_THAT(svg, HasSubstr(">50</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">40</text>")));
}

TEST(LineChart, EscapesNames) {
  const std::string svg = to_svg(
      {.x_title = "<x>", .y_title = "y", .lines = {{.name = "a & b", .points = {{1, 1}, {2, 2}}}}});
  EXPECT_THAT(svg, HasSubstr("&lt;x&gt;"));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, Not(HasSubstr("<x>")));
}

TEST(LineChart, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = to_inline_svg(
      {.x_title = "x", .y_title = "y", .lines = {{"loss", {{0, 1}, {1, nan}, {2, 3}}}}});
  EXPECT_THAT(svg, HasSubstr("points=\"52.0,145.3 408.0,12.0 \""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(to_inline_svg({.x_title = "x", .y_title = "y", .lines = {{"none", {}}}}),
              HasSubstr("points=\"\""));
}

TEST(LineChart, DrawsTheSpreadAsABand) {
  const std::string svg = to_inline_svg(
      {.x_title = "x", .y_title = "y", .lines = {{"a", {{0, 2}, {1, 2}}, {{1, 3}, {0, 4}}}}});
  // Along the upper edge, and back along the lower one.
  EXPECT_THAT(svg,
              HasSubstr("class=\"area\" points=\"52.0,62.0 408.0,12.0 408.0,212.0 52.0,162.0 "));
}

// A page has its own style and key.
TEST(LineChart, IsBareInAPage) {
  const LineChart chart{.x_title = "x", .y_title = "y", .lines = {{"a", {{0, 2}, {1, 2}}}}};
  EXPECT_THAT(to_inline_svg(chart), Not(HasSubstr("<style>")));
  EXPECT_THAT(to_inline_svg(chart), Not(HasSubstr(">a</text>")));
  EXPECT_THAT(to_svg(chart), HasSubstr("<style>"));
}

}  // namespace
}  // namespace sluice
