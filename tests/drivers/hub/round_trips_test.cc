#include "drivers/hub/round_trips.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

TEST(RoundTrips, NoneTookNoTime) {
  const RoundTrips none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.quantile_ms(0.99), 0);
}

TEST(RoundTrips, APartOfAMillisecondIsAWholeOne) {
  RoundTrips trips;
  trips.add(from_us(1000));
  EXPECT_EQ(trips.quantile_ms(1), 1);
  trips.add(from_us(1001));
  EXPECT_EQ(trips.quantile_ms(1), 2);
  EXPECT_EQ(trips.quantile_ms(0.5), 1);
}

RC_GTEST_PROP(RoundTrips, QuantilesAreThoseOfTheSortedTimes, ()) {
  const auto times =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50)));
  const double share = *rc::gen::inRange(0, 101) / 100.0;
  RoundTrips trips;
  for (const int ms : times) {
    trips.add(from_us(1e3 * ms));
  }
  std::vector<int> sorted = times;
  std::ranges::sort(sorted);
  const double count = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(share * count)));
  RC_ASSERT(trips.quantile_ms(share) == sorted[rank - 1]);
}

}  // namespace
}  // namespace sluice
