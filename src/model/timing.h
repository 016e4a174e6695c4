#pragma once

#include <vector>

#include "base/units.h"

namespace sluice {

// How long something took for so many bytes, over several repetitions.
struct Timing {
  Bytes bytes = 0;
  Duration median{0};
  Duration min{0};
  Duration max{0};
  Duration interquartile_range{0};

  bool operator==(const Timing&) const = default;
};

// Of at least one repetition.
Timing timing_of(Bytes bytes, std::vector<Duration> times);

}  // namespace sluice
