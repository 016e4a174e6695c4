#include "collectives/ring.h"

#include <cstdint>
#include <utility>

#include "collectives/compose.h"

namespace sluice {

// Segment s is the s-th of n nearly equal parts of the whole. It starts at rank s and travels
// round the ring, where each rank adds its own data, until rank s-1 completes it. Then it travels
// all the way back, and each rank keeps a copy.
//
//   n = 3      rank 0 sends     rank 1 sends     rank 2 sends
//   round 0    segment 0 to 1   segment 1 to 2   segment 2 to 0    added
//   round 1    segment 2 to 1   segment 0 to 2   segment 1 to 0    added
//   round 2    segment 1 to 2   segment 2 to 0   segment 0 to 1    copied
//   round 3    segment 2 to 2   segment 0 to 0   segment 1 to 1    copied
Plan ring(std::size_t rank, std::size_t size, Range whole) {
  const auto segment = [&](std::size_t index) {
    return part_of(whole, static_cast<std::int64_t>(size), static_cast<std::int64_t>(index % size));
  };
  const std::size_t next = (rank + 1) % size;
  const std::size_t previous = (rank + size - 1) % size;
  Plan plan;
  for (std::size_t step = 0; step + 1 < size; ++step) {
    plan.push_back({.send = transfer(next, segment(rank + size - step)),
                    .receive = transfer(previous, segment(previous + size - step)),
                    .reduce = true});
  }
  return there_and_back(std::move(plan));
}

}  // namespace sluice
