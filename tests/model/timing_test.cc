#include "model/timing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

RC_GTEST_PROP(Timing, HalfOfTheTimesLieOnEitherSideOfTheMedian, ()) {
  const auto counts = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::inRange(-kForever.count(), kForever.count())));
  std::vector<Duration> times;
  for (const std::int64_t count : counts) {
    times.emplace_back(count);
  }
  const Timing timing = timing_of(5, times);
  const auto below = std::ranges::count_if(times, [&](Duration t) { return t < timing.median; });
  const auto above = std::ranges::count_if(times, [&](Duration t) { return t > timing.median; });
  RC_ASSERT(2 * static_cast<std::size_t>(below) <= times.size());
  RC_ASSERT(2 * static_cast<std::size_t>(above) <= times.size());
  RC_ASSERT(std::ranges::count(times, timing.median) > 0);
  for (const Duration time : times) {
    RC_ASSERT(timing.min <= time && time <= timing.max);
  }
  RC_ASSERT(timing.bytes == 5);
}

TEST(Timing, HasTheInterquartileRange) {
  const Timing timing =
      timing_of(1, {Duration(9), Duration(1), Duration(5), Duration(4), Duration(1000)});
  EXPECT_EQ(timing.interquartile_range, Duration(5));
}

TEST(Timing, OfNothingIsADefect) { EXPECT_THROW(timing_of(1, {}), InvariantError); }

}  // namespace
}  // namespace sluice
