#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/bits.h"

namespace sluice {

// The upper 16 bits of each float. The relative error is below 2^-7. A NaN that arithmetic made (a
// quiet one) stays NaN.
class Truncate16 {
 public:
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

}  // namespace sluice
