#include "base/range.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sluice {
namespace {

TEST(RangeTest, ContainsItsParts) {
  EXPECT_TRUE((Range{2, 5}.contains({2, 5})));
  EXPECT_TRUE((Range{2, 5}.contains({3, 4})));
  EXPECT_FALSE((Range{2, 5}.contains({1, 3})));
  EXPECT_FALSE((Range{2, 5}.contains({3, 6})));
}

TEST(RangeTest, GivesTheFirstPartsTheRest) {
  EXPECT_EQ(part_of({10, 21}, 3, 0), (Range{10, 14}));
  EXPECT_EQ(part_of({10, 21}, 3, 1), (Range{14, 18}));
  EXPECT_EQ(part_of({10, 21}, 3, 2), (Range{18, 21}));
}

RC_GTEST_PROP(RangeProperty, PartsTileTheWholeNearlyEvenly, ()) {
  const auto begin = *rc::gen::inRange<std::int64_t>(-1000, 1000);
  const auto length = *rc::gen::inRange<std::int64_t>(0, 1000);
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 50);
  const Range whole{begin, begin + length};
  std::int64_t reached = whole.begin;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Range part = part_of(whole, parts, i);
    RC_ASSERT(part.begin == reached);
    RC_ASSERT(part.size() == length / parts || part.size() == (length + parts - 1) / parts);
    reached = part.end;
  }
  RC_ASSERT(reached == whole.end);
}

}  // namespace
}  // namespace sluice
