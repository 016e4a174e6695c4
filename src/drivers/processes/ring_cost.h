#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "model/job.h"

namespace sluice {

// All processes in a ring: each sends to the next one and receives from the previous one.
struct Ring {
  // Nanoseconds of each of so many turns with messages of this length.
  std::function<std::vector<double>(std::size_t bytes, int count)> times_of_turns;
  // The highest value of all processes.
  std::function<double(double own)> slowest;
};

// The cost of a message in a ring. All processes call this.
LinkCost measure_ring(const Ring& ring);

}  // namespace sluice
