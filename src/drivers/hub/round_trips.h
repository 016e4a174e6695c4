#pragma once

#include <cstdint>
#include <map>

#include "base/units.h"

namespace sluice {

// How long the hub's heartbeats were under way to the processes and back, in whole milliseconds,
// rounded up.
class RoundTrips {
 public:
  void add(Duration time);

  std::int64_t count() const { return count_; }
  // The shortest time that this share of them, from 0 to 1, did not exceed; 0 if there are none.
  std::int64_t quantile_ms(double share) const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;  // by milliseconds
  std::int64_t count_ = 0;
};

}  // namespace sluice
