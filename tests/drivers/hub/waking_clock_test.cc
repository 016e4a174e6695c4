#include "drivers/hub/waking_clock.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(WakingClock, CountsNoMoreThanASecondBetweenTwoLooks) {
  WakingClock clock;
  const Time begin = clock.now(from_us(10e6));
  EXPECT_EQ(clock.now(from_us(10.4e6)) - begin, from_us(0.4e6));
  EXPECT_EQ(clock.now(from_us(11.4e6)) - begin, from_us(1.4e6));
  EXPECT_EQ(clock.now(from_us(60e6)) - begin, from_us(2.4e6)) << "it has slept for most of it";
  EXPECT_EQ(clock.now(from_us(60.1e6)) - begin, from_us(2.5e6));
}

}  // namespace
}  // namespace sluice
