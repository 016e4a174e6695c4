#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <random>
#include <string>

#include "base/units.h"

namespace sluice {

inline constexpr std::size_t kTokenBytes = 32;
// A stranger that connects and says nothing holds up the others for this long.
inline const Duration kGreetingLimit = from_us(1e6);

// What whoever connects must show: 128 random bits.
inline std::string draw_token() {
  std::random_device device;
  std::string token;
  while (token.size() < kTokenBytes) {
    token += fmt::format("{:08x}", device());
  }
  return token;
}

}  // namespace sluice
