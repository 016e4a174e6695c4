#include "report/stacked_bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StackedBars, PutsPartsSideBySide) {
  const std::string svg = to_inline_svg({.title = "breakdown",
                                         .unit = "ms",
                                         .parts = {"compute", "waiting"},
                                         .bars = {{"a < b", {6, 2}}, {"c", {4, 0}}}});
  EXPECT_THAT(svg, HasSubstr("<g class=\"s0\"><rect class=\"bar\" x=\"12.0\" y=\"28.0\" "
                             "width=\"522.0\""));
  EXPECT_THAT(svg, HasSubstr("<g class=\"s1\"><rect class=\"bar\" x=\"534.0\" y=\"28.0\" "
                             "width=\"174.0\""));
  EXPECT_THAT(svg, HasSubstr("waiting: 2 ms (25.0 %)"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b: 8 ms"));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"bar\" x=\"12.0\" y=\"84.0\" width=\"348.0\""));
}

TEST(StackedBars, LeavesOutWhatHasNoLength) {
  const std::string svg =
      to_inline_svg({.title = "",
                     .unit = "ms",
                     .parts = {"a", "b", "c"},
                     .bars = {{"x", {-1, std::numeric_limits<double>::quiet_NaN(), 0}}}});
  EXPECT_THAT(svg, Not(HasSubstr("<rect")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace sluice
