#include "codecs/dense.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "codecs/bits.h"

namespace sluice {
namespace {

class Truncate16 {
 public:
  static Bytes size(std::int64_t count) { return 2 * count; }

  static void write(std::span<const float> values, std::byte* bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      store(bytes, i, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16U));
    }
  }

  Truncate16(const std::byte* bytes, float scale) : scale_(scale), halves_(bytes) {}

  float operator[](std::size_t i) const {
    return scale_ * std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(halves_, i)} << 16U);
  }

 private:
  float scale_;
  const std::byte* halves_;
};

class Quantise8 {
 public:
  static Bytes size(std::int64_t count) { return kStepBytes + count; }

  static void write(std::span<const float> values, std::byte* bytes) {
    const float step = step_for(largest_magnitude(values));
    store(bytes, 0, step);
    std::byte* codes = bytes + kStepBytes;
    if (!(step > 0)) {
      std::fill_n(codes, values.size(), std::byte{0});
      return;
    }
    const float steps = 1.0F / step;
    for (std::size_t i = 0; i < values.size(); ++i) {
      codes[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(values[i] * steps + kRounder));
    }
  }

  Quantise8(const std::byte* bytes, float scale)
      : step_(scale * load<float>(bytes, 0)), codes_(bytes + kStepBytes) {}

  float operator[](std::size_t i) const {
    return step_ * static_cast<float>(static_cast<std::int8_t>(codes_[i]));
  }

 private:
  static constexpr Bytes kStepBytes = sizeof(float);
  static constexpr float kLargestCode = 127;
  static constexpr float kLeastRange = 0x1.fffep-101F;  // 2^-100 less what a step may drop
  // 1.5 * 2^23: adding it rounds to the nearest integer and leaves that in the lowest byte.
  static constexpr float kRounder = 12582912.0F;

  // The step keeps 17 significant bits, so that every code times the step is exact. The largest of
  // these products then gives the same step again.
  static float step_for(Magnitude largest) {
    if (largest >= kInfinity) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    const float exact = std::bit_cast<float>(largest) / kLargestCode;
    const auto step = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact) & ~0x7fU);
    return step * kLargestCode < kLeastRange ? 0 : step;
  }

  float step_;
  const std::byte* codes_;
};

// A format has a size, writes a vector, and reads single values times a scale; the rest is common.
template <class Format>
class CodecFor final : public DenseCodec {
 public:
  Bytes encoded_size(std::int64_t count) const override { return Format::size(count); }

  void encode(std::span<const float> values, std::span<std::byte> bytes) const override {
    check_sizes(values.size(), bytes.size());
    Format::write(values, bytes.data());
  }

  void decode(std::span<const std::byte> bytes, std::span<float> values) const override {
    check_sizes(values.size(), bytes.size());
    const Format decoded(bytes.data(), 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = decoded[i];
    }
  }

  void add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const override {
    check_sizes(sum.size(), bytes.size());
    const Format scaled(bytes.data(), scale);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += scaled[i];
    }
  }

 private:
  static void check_sizes(std::size_t values, std::size_t bytes) {
    check(Format::size(static_cast<std::int64_t>(values)) == static_cast<Bytes>(bytes),
          "coded bytes fit the number of values");
  }
};

}  // namespace

std::unique_ptr<DenseCodec> make_dense_codec(Codec codec) {
  if (codec == Codec::kTruncate16) {
    return std::make_unique<CodecFor<Truncate16>>();
  }
  check(codec == Codec::kQuantise8, "a dense codec is truncate16 or quantise8");
  return std::make_unique<CodecFor<Quantise8>>();
}

Bytes dense_size(Codec codec, std::int64_t count) {
  check(codec == Codec::kTruncate16 || codec == Codec::kQuantise8,
        "a dense codec is truncate16 or quantise8");
  return codec == Codec::kTruncate16 ? Truncate16::size(count) : Quantise8::size(count);
}

}  // namespace sluice
