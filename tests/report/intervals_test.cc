#include "report/intervals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace sluice {
namespace {

Interval ticks(int begin, int end) { return {Time(begin), Time(end)}; }

// Every tick that an interval covers.
using Ticks = std::set<int>;

void add_ticks(Ticks& all, int begin, int end) {
  for (int t = begin; t < end; ++t) {
    all.insert(t);
  }
}

Ticks ticks_of(const Intervals& intervals) {
  Ticks all;
  for (const Interval& i : intervals.kept()) {
    add_ticks(all, static_cast<int>(i.begin.count()), static_cast<int>(i.end.count()));
  }
  return all;
}

TEST(IntervalsTest, JoinsWhatTouches) {
  Intervals all;
  all.add(ticks(0, 2));
  all.add(ticks(4, 6));
  EXPECT_EQ(all.kept().size(), 2U);
  all.add(ticks(2, 4));
  ASSERT_EQ(all.kept().size(), 1U);
  EXPECT_EQ(all.kept()[0], ticks(0, 6));
  EXPECT_EQ(all.total(), Duration(6));
}

TEST(IntervalsTest, IgnoresEmptyOnes) {
  Intervals all;
  all.add(ticks(3, 3));
  EXPECT_TRUE(all.kept().empty());
}

TEST(IntervalsTest, ForgetsTimeButNotItsLength) {
  Intervals all;
  all.add(ticks(0, 10));
  all.add(ticks(20, 30));
  all.forget(Time(25));
  ASSERT_EQ(all.kept().size(), 1U);
  EXPECT_EQ(all.kept()[0], ticks(25, 30));
  EXPECT_EQ(all.total(), Duration(20));
  all.add(ticks(12, 27));
  EXPECT_EQ(all.total(), Duration(20)) << "what lies before 25 no longer counts";
}

RC_GTEST_PROP(IntervalsProperty, IsTheUnion, ()) {
  Intervals all;
  Ticks expected;
  const auto count = *rc::gen::inRange(0, 30);
  for (int i = 0; i < count; ++i) {
    const int begin = *rc::gen::inRange(0, 60);
    const int end = begin + *rc::gen::inRange(0, 10);
    all.add(ticks(begin, end));
    add_ticks(expected, begin, end);
    RC_ASSERT(ticks_of(all) == expected);
    RC_ASSERT(all.total() == Duration(static_cast<std::int64_t>(expected.size())));
  }
  for (std::size_t i = 1; i < all.kept().size(); ++i) {
    RC_ASSERT(all.kept()[i - 1].end < all.kept()[i].begin);
  }
}

RC_GTEST_PROP(IntervalsProperty, OverlapIsTheSharedTicks, ()) {
  Intervals a;
  Intervals b;
  Ticks in_a;
  Ticks in_b;
  const auto count = *rc::gen::inRange(0, 20);
  for (int i = 0; i < count; ++i) {
    const int begin = *rc::gen::inRange(0, 60);
    const int end = begin + *rc::gen::inRange(0, 12);
    (i % 2 == 0 ? a : b).add(ticks(begin, end));
    add_ticks(i % 2 == 0 ? in_a : in_b, begin, end);
  }
  const int until = *rc::gen::inRange(0, 80);
  std::int64_t shared = 0;
  for (const int t : in_a) {
    shared += t < until && in_b.contains(t) ? 1 : 0;
  }
  RC_ASSERT(overlap(a, b, Time(until)) == Duration(shared));
}

}  // namespace
}  // namespace sluice
