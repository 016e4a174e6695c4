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
  const auto codec = make_dense_codec(Codec::kFloat24);
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_size(1)));
  codec->encode({&value, 1}, bytes);
  float decoded = 0;
  codec->decode(bytes, {&decoded, 1});
  return decoded;
}

TEST(Float24, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(passed(0x1.0002p0F), 0x1.0002p0F);
  EXPECT_EQ(passed(0x1.000082p0F), 0x1.0000p0F);
  EXPECT_EQ(passed(0x1.000102p0F), 0x1.0002p0F);
  EXPECT_EQ(passed(0x1.0001p0F), 0x1.0000p0F);
  EXPECT_EQ(passed(-0x1.0003p0F), -0x1.0004p0F);
  EXPECT_TRUE(std::isnan(passed(std::numeric_limits<float>::signaling_NaN())));
}

RC_GTEST_PROP(Float24, IsOffByHalfABitAtMostAndThenStays, ()) {
  const auto value = static_cast<float>(*rc::gen::inRange(-16'000'000, 16'000'000)) * 0x1.0p-20F;
  const float once = passed(value);
  RC_ASSERT(std::abs(once - value) <= std::abs(value) * 0x1.0p-16F);
  RC_ASSERT(passed(once) == once);
}

TEST(Float24, GoesWhereDenseCodecsGo) {
  Strategy strategy;
  strategy.codec = *value_of(kCodecNames, "float24");
  strategy.error_feedback = true;
  EXPECT_TRUE(validate(strategy));
  EXPECT_EQ(coded_size(strategy, 1000, 1), 3000);
}

}  // namespace
}  // namespace sluice
