#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace sluice::testing {

// Something that can happen next in a ShuffledWorld.
struct Choice {
  enum class Kind : std::uint8_t {
    kForward,
    kBackward,
    kPosted,
    kFlight,
    kSent,
    kReturned,
    kWork,
    kLost,
  };

  Kind kind;
  std::size_t index;
  double haste;
};

// Draws so many rivals and returns the one with the most haste.
inline Choice choose(const std::vector<Choice>& choices, std::size_t rivals, Random& random) {
  Choice chosen = choices[random.below(choices.size())];
  for (std::size_t i = 1; i < rivals; ++i) {
    const Choice& rival = choices[random.below(choices.size())];
    chosen = rival.haste > chosen.haste ? rival : chosen;
  }
  return chosen;
}

}  // namespace sluice::testing
