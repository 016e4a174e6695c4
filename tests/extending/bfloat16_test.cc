#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "codecs/dense.h"
#include "codecs/size.h"
#include "nodes/validate.h"

namespace sluice {
namespace {

float passed(float value) {
  const auto codec = make_dense_codec(Codec::kBfloat16);
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_size(1)));
  codec->encode({&value, 1}, bytes);
  float decoded = 0;
  codec->decode(bytes, {&decoded, 1});
  return decoded;
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(passed(0x1.02p0F), 0x1.02p0F);
  EXPECT_EQ(passed(0x1.0081p0F), 0x1.00p0F);
  EXPECT_EQ(passed(0x1.0101p0F), 0x1.02p0F);
  EXPECT_EQ(passed(0x1.01p0F), 0x1.00p0F);
  EXPECT_EQ(passed(-0x1.03p0F), -0x1.04p0F);
  EXPECT_TRUE(std::isnan(passed(std::numeric_limits<float>::signaling_NaN())));
}

RC_GTEST_PROP(Bfloat16, IsOffByHalfABitAtMostAndThenStays, ()) {
  const auto value = static_cast<float>(*rc::gen::inRange(-2'000'000, 2'000'000)) * 0x1.0p-20F;
  const float once = passed(value);
  RC_ASSERT(std::abs(once - value) <= std::abs(value) * 0x1.0p-8F);
  RC_ASSERT(passed(once) == once);
}

TEST(Bfloat16, GoesWhereDenseCodecsGo) {
  Strategy strategy;
  strategy.codec = *value_of(kCodecNames, "bfloat16");
  strategy.error_feedback = true;
  EXPECT_TRUE(validate(strategy));
  EXPECT_EQ(coded_size(strategy, 1000, 1), 2000);
}

}  // namespace
}  // namespace sluice
