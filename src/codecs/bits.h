#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice {

// The magnitude of a float as an integer: the order of |x| without its sign, with infinity above
// all numbers and NaN above infinity. Integer maxima vectorise where those of floats do not.
using Magnitude = std::uint32_t;

inline constexpr Magnitude kInfinity = 0x7f80'0000U;

inline Magnitude magnitude_of(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fff'ffffU; }

inline Magnitude largest_magnitude(std::span<const float> values) {
  Magnitude largest = 0;
  for (const float x : values) {
    largest = std::max(largest, magnitude_of(x));
  }
  return largest;
}

// Element `i` of an array of T that begins anywhere in memory, in the byte order of the machine, as
// plain floats on the wire are.
template <class T>
T load(const std::byte* array, std::size_t i) {
  T value;
  std::memcpy(&value, array + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* array, std::size_t i, T value) {
  std::memcpy(array + i * sizeof(T), &value, sizeof(T));
}

}  // namespace sluice
