#pragma once

#include <algorithm>
#include <array>
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
  // Lanes of their own, so that no maximum waits for the one before.
  constexpr std::size_t kLanes = 16;
  std::array<Magnitude, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = std::max(lanes[lane], magnitude_of(values[i + lane]));
    }
  }
  Magnitude largest = 0;
  for (; i < values.size(); ++i) {
    largest = std::max(largest, magnitude_of(values[i]));
  }
  for (const Magnitude lane : lanes) {
    largest = std::max(largest, lane);
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
