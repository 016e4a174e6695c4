#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace sluice {
namespace {

// Known values of SplitMix64 with seed 1234567 (as published with the xoshiro generators). They
// keep runs with old seeds repeatable.
TEST(RandomTest, ScramblesAsSplitMixDoes) {
  std::uint64_t state = 1234567;
  const std::array<std::uint64_t, 3> expected{6457827717110365317ULL, 3203168211198807973ULL,
                                              9817491932198370423ULL};
  for (const std::uint64_t value : expected) {
    EXPECT_EQ(mix(state), value);
    state += 0x9e3779b97f4a7c15ULL;
  }
}

TEST(RandomTest, RepeatsItselfForASeed) {
  Random a(7, 3);
  Random b(7, 3);
  Random other_stream(7, 4);
  Random other_seed(8, 3);
  const std::uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, other_stream.next());
  EXPECT_NE(first, other_seed.next());
}

TEST(RandomTest, FillsItsBoundsEvenly) {
  Random random(1);
  std::array<int, 10> counts{};
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    ++counts.at(random.below(10));
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10'000, 500);
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
}

TEST(RandomTest, BelowOneIsZero) { EXPECT_EQ(Random(1).below(1), 0U); }

}  // namespace
}  // namespace sluice
