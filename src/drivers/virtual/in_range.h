#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "base/units.h"

namespace sluice {

// Throws if virtual time cannot be counted any further.
inline void check_in_range(Time now) {
  if (now >= kForever) [[unlikely]] {
    throw std::runtime_error(
        fmt::format("the simulation passes {:.0f} days of virtual time, the most it can count; "
                    "simulate fewer iterations, or smaller times",
                    to_seconds(kForever) / 86'400));
  }
}

}  // namespace sluice
