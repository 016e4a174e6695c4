#include "base/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace sluice {
namespace {

using Limits = std::numeric_limits<float>;

// At every position of a vector with whole blocks and a remainder.
TEST(FiniteTest, FindsOneAmongMany) {
  std::vector<float> values(2500, Limits::max());
  values[7] = -Limits::max();
  values[8] = Limits::denorm_min();
  values[9] = -0.0F;
  ASSERT_TRUE(all_finite(values));
  for (const float off : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                          -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float before = values[i];
      values[i] = off;
      EXPECT_FALSE(all_finite(values)) << off << " at " << i;
      values[i] = before;
    }
  }
}

TEST(FiniteTest, NothingIsFinite) { EXPECT_TRUE(all_finite({})); }

}  // namespace
}  // namespace sluice
