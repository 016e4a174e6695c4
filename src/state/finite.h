#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// Whether none of these is infinite or no number: those have all bits of the exponent set. In
// blocks of a fixed length, which compilers turn into vector instructions of any processor.
inline bool all_finite(std::span<const float> values) {
  constexpr std::size_t kBlock = 1024;
  constexpr std::uint32_t kExponent = 0x7f80'0000;
  const auto is_off = [](float value) {
    return static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) ==
                                      kExponent);
  };
  while (values.size() >= kBlock) {
    std::uint32_t off = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      off |= is_off(values[i]);
    }
    if (off != 0) {
      return false;
    }
    values = values.subspan(kBlock);
  }
  return std::ranges::none_of(values, [&](float value) { return is_off(value) != 0; });
}

}  // namespace sluice
