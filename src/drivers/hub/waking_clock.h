#pragma once

#include <algorithm>

#include "drivers/realtime/clock.h"

namespace sluice {

// The time that passes for one who is awake: between two looks at it never more than this. Who has
// stood still with the whole machine, or was not given a processor, cannot tell from the time that
// it missed whether others were silent.
class WakingClock {
 public:
  static inline const Duration kMostAtOnce = from_us(1e6);

  Time now() { return now(clock_.now()); }
  // The same, if the time is this.
  Time now(Time real) {
    awake_ += std::clamp(real - looked_, Duration(0), kMostAtOnce);
    looked_ = real;
    return awake_;
  }

 private:
  Clock clock_;
  Time awake_{0};
  Time looked_ = clock_.now();
};

}  // namespace sluice
