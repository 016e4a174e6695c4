#include "planner/arithmetic_cost.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// On a clock by which everything takes 2^20 * 4 ns, a byte takes one.
TEST(ArithmeticCost, IsTimeOverBytes) {
  Time time{0};
  const ArithmeticCost cost = measured_arithmetic([&] { return time += from_ns(4 << 20); });
  EXPECT_DOUBLE_EQ(cost.reduce_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.update_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.code_ns_per_byte, 1);
}

// A hiccup now and then does not count.
TEST(ArithmeticCost, IsAMedian) {
  Time time{0};
  int calls = 0;
  const ArithmeticCost cost =
      measured_arithmetic([&] { return time += from_ns(4 << 20) * (++calls % 8 == 0 ? 1000 : 1); });
  EXPECT_DOUBLE_EQ(cost.reduce_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.update_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.code_ns_per_byte, 1);
}

}  // namespace
}  // namespace sluice
