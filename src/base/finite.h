#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// True if no value is infinite or NaN. Works in blocks of a fixed length, which compilers turn into
// vector instructions on any processor.
inline bool all_finite(std::span<const float> values) {
  constexpr std::size_t kBlock = 1024;
  constexpr std::size_t kLanes = 32;  // several independent vectors
  constexpr std::uint32_t kExponent = 0x7f80'0000;
  constexpr std::uint32_t kLowestOfExponent = 0x0080'0000;
  // Sets the top bit if all exponent bits are set, which means infinite or NaN.
  const auto carry = [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & kExponent) + kLowestOfExponent;
  };
  const auto is_set = [](std::uint32_t bits) { return bits >> 31U != 0; };
  while (values.size() >= kBlock) {
    std::array<std::uint32_t, kLanes> carries{};
    for (std::size_t i = 0; i < kBlock; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        carries[lane] |= carry(values[i + lane]);
      }
    }
    if (std::ranges::any_of(carries, is_set)) {
      return false;
    }
    values = values.subspan(kBlock);
  }
  return std::ranges::none_of(values, [&](float value) { return is_set(carry(value)); });
}

}  // namespace sluice
