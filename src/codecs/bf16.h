#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/bits.h"

namespace sluice {

// bfloat16: the nearest number of 16 bits with the exponent of a float; of two that are as near,
// the even one. The relative error is at most 2^-8. NaN stays NaN, and what is above the largest
// such number becomes infinite.
class Bf16 {
 public:
  static void write(std::span<const float> values, std::byte* bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      store(bytes, i, rounded(values[i]));
    }
  }

  Bf16(const std::byte* bytes, float scale) : scale_(scale), halves_(bytes) {}

  float operator[](std::size_t i) const {
    return scale_ * std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(halves_, i)} << 16U);
  }

 private:
  static std::uint16_t rounded(float value) {
    constexpr std::uint32_t kQuiet = 0x40;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t upper = bits >> 16U;
    const bool is_nan = magnitude_of(value) > kInfinity;
    const std::uint32_t nearest = (bits + 0x7fffU + (upper & 1U)) >> 16U;
    return static_cast<std::uint16_t>(is_nan ? upper | kQuiet : nearest);
  }

  float scale_;
  const std::byte* halves_;
};

}  // namespace sluice
