#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "codecs/bits.h"

namespace sluice {

// A step, then a signed number of steps of kBits bits for each value. The error is at most half a
// step: with 8 bits 1/254 of the largest magnitude, with 4 bits 1/14, with 2 bits half of it.
// Vectors below 2^-100 become zeros. A vector with a value that is not finite becomes NaN
// throughout: it has no range, and a divergence must not be hidden.
template <unsigned kBits>
class Quantise {
 public:
  // The step keeps 17 significant bits, so that every code times the step is exact. The largest of
  // these products then gives the same step again.
  static float step_for(Magnitude largest) {
    if (largest >= kInfinity) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    const float exact = std::bit_cast<float>(largest) / kLargestCode;
    const auto step = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact) & ~0x7fU);
    return step * kLargestCode < kMinRange ? 0 : step;
  }

  static void write(std::span<const float> values, std::byte* codes, float step) {
    if (!(step > 0)) {
      std::fill_n(codes, (values.size() + kPerByte - 1) / kPerByte, std::byte{0});
      return;
    }
    const float steps = 1.0F / step;
    const std::size_t whole = values.size() / kPerByte;
    for (std::size_t b = 0; b < whole; ++b) {
      codes[b] = packed(values.data() + b * kPerByte, kPerByte, steps);
    }
    if (const std::size_t rest = values.size() % kPerByte; rest > 0) {
      codes[whole] = packed(values.data() + whole * kPerByte, rest, steps);
    }
  }

  Quantise(const std::byte* codes, float step) : step_(step), codes_(codes) {}

  float operator[](std::size_t i) const { return at(i / kPerByte, i % kPerByte); }

  // The value at place `j` of a byte.
  float at(std::size_t byte, std::size_t j) const {
    // The code comes to the top of a byte, whose shift down brings the sign.
    const auto above = static_cast<unsigned>((kPerByte - 1 - j) * kBits);
    const auto code = static_cast<std::int8_t>(
        static_cast<std::uint8_t>(static_cast<unsigned>(codes_[byte]) << above));
    return step_ * static_cast<float>(code >> (8 - kBits));
  }

 private:
  static constexpr std::size_t kPerByte = 8 / kBits;
  static constexpr unsigned kMask = (1U << kBits) - 1;
  static constexpr float kLargestCode = (1U << (kBits - 1)) - 1;
  static constexpr float kMinRange = 0x1.fffep-101F;  // 2^-100 less what a step may drop
  // 1.5 * 2^23: adding it rounds to the nearest integer and leaves that in the lowest bits.
  static constexpr float kRounder = 12582912.0F;

  static std::byte packed(const float* values, std::size_t count, float steps) {
    std::uint32_t byte = 0;
    for (std::size_t i = 0; i < count; ++i) {
      byte |= (std::bit_cast<std::uint32_t>(values[i] * steps + kRounder) & kMask) << (i * kBits);
    }
    return static_cast<std::byte>(byte);
  }

  float step_;
  const std::byte* codes_;
};

}  // namespace sluice
