#include "model/timing.h"

#include <algorithm>

#include "base/check.h"
#include "base/median.h"

namespace sluice {

Timing timing_of(Bytes bytes, std::vector<Duration> times) {
  check(!times.empty(), "a timing has at least one repetition");
  const auto [min, max] = std::ranges::minmax(times);
  const Duration middle_half = interquartile_range(times);
  return {bytes, median_of(std::move(times)), min, max, middle_half};
}

}  // namespace sluice
