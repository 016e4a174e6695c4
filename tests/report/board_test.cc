#include "report/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;

Board some_board() {
  return {.title = "who <wins>",
          .columns = {"slow", "fast"},
          .rows = {{.name = "4 hosts",
                    .cells = {{.name = "diloco",
                               .figure = "1.20 ± 0.01",
                               .series = 1,
                               .all = {"p3: 1.50", "diloco: 1.20"}},
                              {.name = "p3", .figure = "1.10", .series = 0, .all = {}}}},
                   {.name = "8 hosts",
                    .cells = {{}, {.name = "p3", .figure = "1.00", .series = 0, .all = {}}}}}};
}

TEST(BoardTest, HasACellOfTheWinnersColourForEachRowAndColumn) {
  const std::string svg = to_svg(some_board());
  EXPECT_THAT(svg, HasSubstr("<title>who &lt;wins&gt;</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>p3: 1.50; diloco: 1.20</title></rect></g>"));
  EXPECT_THAT(svg, HasSubstr("<g class=\"s1\"><rect class=\"area\" x=\"74\" y=\"57\""));
  EXPECT_THAT(svg, HasSubstr(">1.20 ± 0.01</text>"));
  EXPECT_THAT(svg, HasSubstr(">8 hosts</text>"));
  EXPECT_THAT(svg, HasSubstr(">-</text>")) << "nobody wins";
}

TEST(BoardTest, IsATableOfText) {
  EXPECT_EQ(to_text(some_board()),
            "         slow                 fast\n"
            "4 hosts  diloco, 1.20 ± 0.01  p3, 1.10\n"
            "8 hosts  -                    p3, 1.00\n");
}

}  // namespace
}  // namespace sluice
