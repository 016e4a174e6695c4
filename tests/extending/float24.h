#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/bits.h"

namespace sluice {

// The nearest number of 24 bits with the exponent of a float; of two that are as near, the even
// one. The relative error is at most 2^-16. NaN stays NaN, and what is above the largest such
// number becomes infinite.
class Float24 {
 public:
  static void write(std::span<const float> values, std::byte* bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t code = rounded(values[i]);
      store(bytes, 3 * i, static_cast<std::uint8_t>(code));
      store(bytes, 3 * i + 1, static_cast<std::uint8_t>(code >> 8U));
      store(bytes, 3 * i + 2, static_cast<std::uint8_t>(code >> 16U));
    }
  }

  Float24(const std::byte* bytes, float scale) : scale_(scale), codes_(bytes) {}

  float operator[](std::size_t i) const {
    const std::uint32_t low = load<std::uint8_t>(codes_, 3 * i);
    const std::uint32_t middle = load<std::uint8_t>(codes_, 3 * i + 1);
    const std::uint32_t high = load<std::uint8_t>(codes_, 3 * i + 2);
    return scale_ * std::bit_cast<float>((low << 8U) | (middle << 16U) | (high << 24U));
  }

 private:
  static std::uint32_t rounded(float value) {
    constexpr std::uint32_t kQuiet = 0x4000;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t upper = bits >> 8U;
    const bool is_nan = magnitude_of(value) > kInfinity;
    return is_nan ? upper | kQuiet : (bits + 0x7fU + (upper & 1U)) >> 8U;
  }

  float scale_;
  const std::byte* codes_;
};

}  // namespace sluice
