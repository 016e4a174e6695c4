#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "codecs/bits.h"

namespace sluice {

// A step, then a signed byte of steps for each value. The error is at most half a step, which is
// 1/254 of the largest magnitude. Vectors below 2^-100 become zeros. A vector with a value that is
// not finite becomes NaN throughout: it has no range, and a divergence must not be hidden.
class Quantise8 {
 public:
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
  static constexpr std::size_t kStepBytes = sizeof(float);
  static constexpr float kLargestCode = 127;
  static constexpr float kMinRange = 0x1.fffep-101F;  // 2^-100 less what a step may drop
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
    return step * kLargestCode < kMinRange ? 0 : step;
  }

  float step_;
  const std::byte* codes_;
};

}  // namespace sluice
