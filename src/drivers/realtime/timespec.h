#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "base/units.h"

namespace sluice {

// For calls of the system that wait no longer than this.
inline timespec to_timespec(Duration time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

}  // namespace sluice
