#include "planner/arithmetic_cost.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// On a clock where everything takes 2^20 * 4 ns, a byte takes 1 ns.
TEST(ArithmeticCost, IsTimeOverBytes) {
  Time time{0};
  const ArithmeticCost cost = measured_arithmetic([&] { return time += from_ns(4 << 20); });
  EXPECT_DOUBLE_EQ(cost.reduce_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.update_ns_per_byte, 1);
  EXPECT_DOUBLE_EQ(cost.code_ns_per_byte, 1);
}

// An occasional delay has no effect.
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
