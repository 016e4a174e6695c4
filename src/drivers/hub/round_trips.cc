#include "drivers/hub/round_trips.h"

#include <cmath>

namespace sluice {

void RoundTrips::add(Duration time) {
  ++counts_[static_cast<std::int64_t>(std::ceil(to_us(time) / 1e3))];
  ++count_;
}

std::int64_t RoundTrips::quantile_ms(double share) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
  std::int64_t below = 0;
  for (const auto& [ms, count] : counts_) {
    below += count;
    if (below >= wanted) {
      return ms;
    }
  }
  return 0;
}

}  // namespace sluice
