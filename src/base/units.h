#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <ratio>

namespace sluice {

// Time is counted in whole picoseconds, so that sums are exact and equal times compare equal.
using Duration = std::chrono::duration<std::int64_t, std::pico>;
using Time = Duration;  // since the start of the run

using Bytes = std::int64_t;

inline constexpr Bytes kFloatBytes = 4;

// The longest duration: 26 days. A few of these can be added without overflow.
inline constexpr Duration kForever = Duration::max() / 4;

// Clamps longer durations, and NaN, to kForever.
inline Duration from_ps(double ps) {
  constexpr auto kMax = static_cast<double>(kForever.count());
  if (!(ps < kMax)) {
    return kForever;
  }
  return ps > -kMax ? Duration(std::llround(ps)) : -kForever;
}
inline Duration from_us(double us) { return from_ps(us * 1e6); }
inline Duration from_ns(double ns) { return from_ps(ns * 1e3); }
inline double to_us(Duration d) { return static_cast<double>(d.count()) * 1e-6; }
inline double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }

}  // namespace sluice
