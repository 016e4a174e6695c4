#include "codecs/dense.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "codecs/error_feedback.h"
#include "codecs/values.h"

namespace sluice {
namespace {

using testing::any_values;
using testing::kInf;
using testing::kNan;

constexpr float kMax = std::numeric_limits<float>::max();

std::vector<std::byte> encoded(Codec format, std::span<const float> values) {
  const auto codec = make_dense_codec(format);
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(codec->encoded_size(static_cast<std::int64_t>(values.size()))));
  codec->encode(values, bytes);
  return bytes;
}

std::vector<float> decoded(Codec format, std::span<const std::byte> bytes, std::size_t count) {
  std::vector<float> values(count);
  make_dense_codec(format)->decode(bytes, values);
  return values;
}

std::vector<float> passed(Codec format, std::span<const float> values) {
  return decoded(format, encoded(format, values), values.size());
}

std::vector<Codec> all_formats() {
  std::vector<Codec> formats;
  for (const CodecTraits& codec : kCodecs) {
    if (codec.kind == CodecKind::kDense) {
      formats.push_back(codec.value);
    }
  }
  return formats;
}

// NaN differs from itself, its bits do not.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

Codec any_format() { return *rc::gen::elementOf(all_formats()); }

TEST(DenseCodecTest, TakesTheBytesItSays) {
  EXPECT_EQ(make_dense_codec(Codec::kTruncate16)->encoded_size(1000), 2000);
  EXPECT_EQ(make_dense_codec(Codec::kBf16)->encoded_size(1000), 2000);
  EXPECT_EQ(make_dense_codec(Codec::kQuantise8)->encoded_size(1000), 1004);
  EXPECT_EQ(make_dense_codec(Codec::kQuantise4)->encoded_size(1001), 505);
  EXPECT_EQ(make_dense_codec(Codec::kQuantise2)->encoded_size(1001), 255);
}

TEST(DenseCodecTest, RefusesBytesThatDoNotFit) {
  for (const auto format : all_formats()) {
    const auto codec = make_dense_codec(format);
    std::vector<float> values(8);
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_size(8)) + 1);
    EXPECT_THROW(codec->encode(values, bytes), InvariantError);
    EXPECT_THROW(codec->decode(bytes, values), InvariantError);
    EXPECT_THROW(codec->add(bytes, 1, values), InvariantError);
  }
}

TEST(DenseCodecTest, RefusesPartsThatDoNotFit) {
  for (const auto format : all_formats()) {
    const auto codec = make_dense_codec(format);
    std::vector<float> part(64);
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_size(128)));
    EXPECT_NO_THROW(codec->read_part(bytes, 64, part));
    EXPECT_THROW(codec->read_part(bytes, 128, part), InvariantError);
    EXPECT_THROW(codec->read_part(bytes, 63, part), InvariantError);
    EXPECT_THROW(codec->add_part(bytes, 128, 1, part), InvariantError);
    EXPECT_THROW(codec->write_part(part, 128, bytes), InvariantError);
  }
}

// Where a vector may be cut, with its end.
std::vector<std::size_t> any_cuts(std::size_t count) {
  std::vector<std::size_t> cuts{0};
  for (std::size_t at = DenseCodec::kCut; at < count; at += DenseCodec::kCut) {
    if (*rc::gen::inRange(0, 4) == 0) {
      cuts.push_back(at);
    }
  }
  cuts.push_back(count);
  return cuts;
}

RC_GTEST_PROP(DenseCodecProperties, PartsInAnyOrderGiveTheBitsOfTheWhole, ()) {
  const auto codec = make_dense_codec(any_format());
  const auto values = any_values(1, 3000);
  std::vector<float> residual = any_values(values.size(), values.size());
  std::vector<float> residual_in_parts = residual;
  const bool feedback = *rc::gen::arbitrary<bool>();
  const ErrorFeedback fed_back(*codec, residual);
  const ErrorFeedback fed_back_in_parts(*codec, residual_in_parts);
  const DenseCodec& whole = feedback ? static_cast<const DenseCodec&>(fed_back) : *codec;
  const DenseCodec& parts = feedback ? static_cast<const DenseCodec&>(fed_back_in_parts) : *codec;
  const auto size = static_cast<std::size_t>(codec->encoded_size(std::ssize(values)));
  std::vector<std::byte> expected(size);
  whole.encode(values, expected);

  const auto cuts = any_cuts(values.size());
  const auto in_parts = [&](auto&& take) {
    for (std::size_t p = cuts.size() - 1; p-- > 0;) {
      take(cuts[p], cuts[p + 1] - cuts[p]);
    }
  };
  std::vector<std::byte> bytes(size);
  Magnitude largest = 0;
  in_parts([&](std::size_t first, std::size_t count) {
    largest = std::max(largest, parts.look_at(std::span(values).subspan(first, count), first));
  });
  parts.begin(largest, bytes);
  in_parts([&](std::size_t first, std::size_t count) {
    parts.write_part(std::span(values).subspan(first, count), first, bytes);
  });
  RC_ASSERT(bytes == expected);
  RC_ASSERT(bits_of(residual_in_parts) == bits_of(residual));

  std::vector<float> read(values.size());
  std::vector<float> sum = values;
  in_parts([&](std::size_t first, std::size_t count) {
    parts.read_part(bytes, first, std::span(read).subspan(first, count));
    parts.add_part(bytes, first, -0.5F, std::span(sum).subspan(first, count));
  });
  std::vector<float> expected_read(values.size());
  std::vector<float> expected_sum = values;
  whole.decode(bytes, expected_read);
  whole.add(bytes, -0.5F, expected_sum);
  RC_ASSERT(bits_of(read) == bits_of(expected_read));
  RC_ASSERT(bits_of(sum) == bits_of(expected_sum));
}

RC_GTEST_PROP(DenseCodecProperties, CodingWhatWasDecodedGivesTheSameBytes, ()) {
  const auto format = any_format();
  auto values = any_values(0, 3000);
  if (!values.empty() && *rc::gen::arbitrary<bool>()) {
    values[values.size() / 2] = *rc::gen::element(kNan, kInf, -kInf, kMax, -kMax, 0x1p-100F, -0.0F);
  }
  const auto bytes = encoded(format, values);
  RC_ASSERT(encoded(format, decoded(format, bytes, values.size())) == bytes);
}

// Where a range has bits that the step must drop, the step must come out the same all the same.
RC_GTEST_PROP(DenseCodecProperties, AnyRangeGivesTheSameStepAgain, ()) {
  const auto bits = *rc::gen::inRange<std::uint32_t>(0, 0x7f80'0000U);
  float range = 0;
  std::memcpy(&range, &bits, sizeof(range));
  const std::vector<float> values{range / 3, -range, range / 7};
  const auto format = *rc::gen::element(Codec::kQuantise8, Codec::kQuantise4, Codec::kQuantise2);
  const auto bytes = encoded(format, values);
  RC_ASSERT(encoded(format, decoded(format, bytes, 3)) == bytes);
}

RC_GTEST_PROP(DenseCodecProperties, AddsWhatItDecodes, ()) {
  const auto format = any_format();
  const auto values = any_values(1, 3000);
  const auto scale = *rc::gen::element(1.0F, -1.0F, 0.25F);
  const auto bytes = encoded(format, values);
  const auto back = decoded(format, bytes, values.size());
  const auto before = testing::values_of(testing::Flavour::kSmooth, values.size(), 5);
  auto sum = before;
  make_dense_codec(format)->add(bytes, scale, sum);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(sum[i] == before[i] + scale * back[i]);
  }
}

RC_GTEST_PROP(DenseCodecProperties, BytesMayBeginAnywhere, ()) {
  const auto codec = make_dense_codec(any_format());
  const auto values = any_values(1, 500);
  const auto size =
      static_cast<std::size_t>(codec->encoded_size(static_cast<std::int64_t>(values.size())));
  std::vector<std::byte> memory(size + 1);
  std::vector<std::byte> aligned(size);
  codec->encode(values, std::span(memory).subspan(1));
  codec->encode(values, aligned);
  RC_ASSERT(std::ranges::equal(std::span(memory).subspan(1), aligned));
  std::vector<float> a(values.size());
  std::vector<float> b(values.size());
  codec->decode(std::span(memory).subspan(1), a);
  codec->decode(aligned, b);
  RC_ASSERT(a == b);
}

RC_GTEST_PROP(Truncate16Properties, LosesLessThanTheLastBitTowardsZero, ()) {
  const auto values = any_values(1, 3000);
  const auto back = passed(Codec::kTruncate16, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(std::signbit(back[i]) == std::signbit(values[i]));
    const float lost = std::fabs(values[i]) - std::fabs(back[i]);
    RC_ASSERT(lost >= 0);
    // Denormals have no relative error: the last bit that is left of them is 2^-133.
    RC_ASSERT(lost < std::max(std::fabs(values[i]) * 0x1p-7F, 0x1p-133F));
  }
}

TEST(Truncate16Test, KeepsTheUpperBitsAsTheyAre) {
  const std::vector<float> values{1.0F, -2.5F, kInf, -kInf, 0.0F, -0.0F, 0x1.fep127F};
  EXPECT_EQ(passed(Codec::kTruncate16, values), values);
  EXPECT_TRUE(std::isnan(passed(Codec::kTruncate16, std::vector{kNan})[0]));
  EXPECT_EQ(passed(Codec::kTruncate16, std::vector{0x1.01ffp0F})[0], 0x1p0F);
}

TEST(Bf16Test, RoundsToTheNearestAndTiesToEven) {
  const std::vector<float> values{0x1.02p0F, 0x1.0081p0F, 0x1.0101p0F, 0x1.01p0F, -0x1.03p0F, kInf};
  const std::vector<float> expected{0x1.02p0F, 0x1p0F, 0x1.02p0F, 0x1p0F, -0x1.04p0F, kInf};
  EXPECT_EQ(passed(Codec::kBf16, values), expected);
  EXPECT_TRUE(std::isnan(
      passed(Codec::kBf16, std::vector{std::numeric_limits<float>::signaling_NaN()})[0]));
}

RC_GTEST_PROP(Bf16Properties, IsOffByHalfTheLastBitAtMost, ()) {
  const auto values = any_values(1, 3000);
  const auto back = passed(Codec::kBf16, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(std::fabs(back[i] - values[i]) <=
              std::max(std::fabs(values[i]) * 0x1p-8F, 0x1p-134F));
  }
}

RC_GTEST_PROP(QuantiseProperties, IsOffByHalfAStepAtMost, ()) {
  const auto [format, steps] =
      *rc::gen::element(std::pair{Codec::kQuantise8, 254}, std::pair{Codec::kQuantise4, 14},
                        std::pair{Codec::kQuantise2, 2});
  const auto values = any_values(1, 3000);
  const auto back = passed(format, values);
  double largest = 0;
  for (const float x : values) {
    largest = std::max(largest, std::fabs(static_cast<double>(x)));
  }
  const double bound = std::max(largest / steps * (1 + 1e-4), largest < 0x1p-100 ? 0x1p-100 : 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(std::fabs(static_cast<double>(values[i]) - static_cast<double>(back[i])) <= bound);
  }
}

TEST(Quantise8Test, RoundsToTheNearestOf255Values) {
  const std::vector<float> values{127, -127, 0, 1.4F, -1.4F, 1.6F, -126.6F};
  const std::vector<float> expected{127, -127, 0, 1, -1, 2, -127};
  EXPECT_EQ(passed(Codec::kQuantise8, values), expected);
}

TEST(QuantiseTest, FewBitsRoundToTheNearestToo) {
  const std::vector<float> values{7, -7, 0, 1.4F, -1.6F, 6.6F, -3.4F};
  EXPECT_EQ(passed(Codec::kQuantise4, values), (std::vector<float>{7, -7, 0, 1, -2, 7, -3}));
  EXPECT_EQ(passed(Codec::kQuantise2, values), (std::vector<float>{7, -7, 0, 0, 0, 7, 0}));
}

TEST(Quantise8Test, StaysFiniteAtTheEdgesOfTheRange) {
  const auto large = passed(Codec::kQuantise8, std::vector{kMax, -kMax, 1.0F});
  EXPECT_TRUE(std::ranges::all_of(large, [](float x) { return std::isfinite(x); }));
  EXPECT_NEAR(large[0] / kMax, 1, 1e-4);
  EXPECT_EQ(large[1], -large[0]);
  EXPECT_EQ(large[2], 0);
  const std::vector<float> zeros(3, 0.0F);
  EXPECT_EQ(passed(Codec::kQuantise8, zeros), zeros);
  EXPECT_EQ(passed(Codec::kQuantise8, std::vector{1e-40F, -0x1p-101F, 0.0F}), zeros);
  EXPECT_EQ(passed(Codec::kQuantise8, std::vector{0x1p-100F, 0.0F})[1], 0);
  EXPECT_NEAR(passed(Codec::kQuantise8, std::vector{0x1p-100F})[0] * 0x1p100F, 1, 1e-4);
}

TEST(Quantise8Test, DoesNotHideADivergence) {
  for (const float bad : {kNan, kInf, -kInf}) {
    const auto back = passed(Codec::kQuantise8, std::vector{1.0F, bad, -0.5F});
    EXPECT_TRUE(std::ranges::all_of(back, [](float x) { return std::isnan(x); })) << bad;
  }
}

}  // namespace
}  // namespace sluice
