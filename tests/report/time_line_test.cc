#include "report/time_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

TimeLine line_with(std::vector<TimeLine::Span> spans) {
  return {.title = "a <run>",
          .unit = "ms",
          .kinds = {"forward", "waiting"},
          .length = 100,
          .lanes = {{"host 0", std::move(spans)}}};
}

TEST(TimeLine, DrawsASpanWhereItIs) {
  const std::string svg = to_inline_svg(line_with({{25, 75, 1, "wait for <conv1>"}}));
  EXPECT_THAT(svg, HasSubstr("<g class=\"s1\"><rect class=\"bar\" x=\"184.00\" y=\"28\" "
                             "width=\"352.00\" height=\"16\"><title>wait for &lt;conv1&gt;"));
  EXPECT_THAT(svg, HasSubstr("<title>a &lt;run&gt;</title>"));
  EXPECT_THAT(svg, HasSubstr(">host 0</text>"));
}

TEST(TimeLine, DrawsWhatNoEyeTellsApartAsOne) {
  std::vector<TimeLine::Span> spans;
  for (int i = 0; i < 2000; ++i) {
    spans.push_back({.begin = i * 0.05, .end = i * 0.05 + 0.04, .kind = 0, .name = "slice"});
  }
  const std::string svg = to_inline_svg(line_with(spans));
  EXPECT_EQ(svg.find("<rect"), svg.rfind("<rect"));
  EXPECT_LT(to_json(line_with(spans)).at("lanes").at(0).at("spans").size(), 500U);
}

TEST(TimeLine, IsReadAsItWasWritten) {
  const TimeLine line = line_with({{0, 30, 0, "forward conv1"}, {30, 100, 1, "wait for fc"}});
  const auto read = time_line_from(nlohmann::json::parse(to_json(line).dump()));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_inline_svg(*read), to_inline_svg(line));
}

TEST(TimeLine, RefusesWhatIsNone) {
  const nlohmann::json good = nlohmann::json::parse(to_json(line_with({{0, 1, 0, "x"}})).dump());
  ASSERT_TRUE(time_line_from(good));
  for (const char* patch : {R"([{"op":"remove","path":"/kinds"}])",
                            R"([{"op":"replace","path":"/length","value":"x"}])",
                            R"([{"op":"replace","path":"/lanes","value":[3]}])",
                            R"([{"op":"replace","path":"/lanes/0/spans/0/2","value":2}])",
                            R"([{"op":"replace","path":"/lanes/0/spans/0/2","value":-1}])",
                            R"([{"op":"replace","path":"/lanes/0/spans/0","value":[1,2]}])"}) {
    EXPECT_FALSE(time_line_from(good.patch(nlohmann::json::parse(patch)))) << patch;
  }
  EXPECT_FALSE(time_line_from(nlohmann::json(3)));
}

TEST(TimeLine, TellsHowBusyALaneIs) {
  const TimeLine line = line_with({{0, 25, 0, ""}, {10, 20, 1, ""}, {60, 85, 0, ""}});
  EXPECT_THAT(busy_shares(line, line.lanes.front(), 4),
              ElementsAre(Pair(12.5, 1.0), Pair(37.5, 0.0), Pair(62.5, 0.6), Pair(87.5, 0.4)));
  EXPECT_THAT(busy_shares(TimeLine{}, TimeLine::Lane{}, 2), SizeIs(2));
}

RC_GTEST_PROP(TimeLine, IsNeverBusierThanAllTheTime, ()) {
  const auto at = [] { return static_cast<double>(*rc::gen::inRange(-50, 200)); };
  std::vector<TimeLine::Span> spans;
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    const double begin = at();
    spans.push_back({.begin = begin, .end = begin + *rc::gen::inRange(0, 60), .kind = 0});
  }
  std::ranges::sort(spans, {}, &TimeLine::Span::begin);
  const TimeLine line = line_with(spans);
  double sum = 0;
  for (const auto& [x, share] : busy_shares(line, line.lanes.front(), 7)) {
    RC_ASSERT(share >= 0 && share <= 1 + 1e-9);
    sum += share / 7;
  }
  int busy = 0;
  for (int t = 0; t < 100; ++t) {
    busy += std::ranges::any_of(
        spans, [t](const auto& span) { return span.begin <= t && t + 1 <= span.end; });
  }
  RC_ASSERT(std::abs(sum - busy / 100.0) < 1e-9);
}

}  // namespace
}  // namespace sluice
