#pragma once

#include <cstdint>

namespace sluice {

// Scrambles a value so that neighbours end up far apart (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// A sequence of numbers determined by its seed, equal on every machine and standard library.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  // Each (seed, stream) has its own sequence, for instance one per worker.
  constexpr Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(mix(seed) ^ stream)) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix(state_);
  }
  // Uniform in [0, bound); the bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64U);
  }
  // Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t state_;
};

}  // namespace sluice
