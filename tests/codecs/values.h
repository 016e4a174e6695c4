#pragma once

#include <rapidcheck.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"

namespace sluice::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Flavour : std::uint8_t {
  kSmooth,       // within [-1, 1)
  kWide,         // magnitudes from 2^-40 to 2^40
  kTies,         // five distinct magnitudes
  kMostlyZeros,  // one in twenty is not
  kDenormals,
};

inline float value_of(Flavour flavour, Random& random) {
  const double u = random.uniform() * 2 - 1;
  switch (flavour) {
    case Flavour::kSmooth:
      return static_cast<float>(u);
    case Flavour::kWide:
      return std::ldexp(static_cast<float>(u), static_cast<int>(random.below(81)) - 40);
    case Flavour::kTies:
      return static_cast<float>(random.below(9)) - 4;
    case Flavour::kMostlyZeros:
      return random.below(20) == 0 ? static_cast<float>(u) : 0;
    case Flavour::kDenormals:
      return static_cast<float>(u) * std::numeric_limits<float>::min();
  }
  return 0;
}

inline std::vector<float> values_of(Flavour flavour, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& x : values) {
    x = value_of(flavour, random);
  }
  return values;
}

inline std::vector<float> any_values(std::size_t min, std::size_t max) {
  const auto flavour = *rc::gen::element(Flavour::kSmooth, Flavour::kWide, Flavour::kTies,
                                         Flavour::kMostlyZeros, Flavour::kDenormals);
  return values_of(flavour, *rc::gen::inRange(min, max + 1), *rc::gen::arbitrary<std::uint64_t>());
}

inline std::uint64_t any_number() { return *rc::gen::arbitrary<std::uint64_t>(); }

}  // namespace sluice::testing
