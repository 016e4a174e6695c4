#include "drivers/processes/ring_cost.h"

#include <algorithm>

#include "base/median.h"

namespace sluice {

LinkCost measure_ring(const Ring& ring) {
  constexpr std::size_t kShort = 256 << 10;  // long enough to wait for its receiver
  constexpr std::size_t kLong = 4 << 20;
  constexpr double kEnoughNs = 1e7;
  constexpr int kTurns = 8;
  constexpr int kLongTurns = 3;    // all processors are busy meanwhile, as MPI waits
  constexpr int kShortTurns = 40;  // in one of them all processors are ready
  const double startup = ring.slowest(median_of(ring.times_of_turns(0, 20)));
  std::size_t bytes = kShort;
  double passage = ring.slowest(std::ranges::min(ring.times_of_turns(bytes, kTurns)));
  while (passage < kEnoughNs && bytes < kLong) {
    const int turns = 4 * passage < kEnoughNs ? kTurns : kLongTurns;
    bytes *= 4;
    passage = ring.slowest(std::ranges::min(ring.times_of_turns(bytes, turns)));
  }
  if (passage < kEnoughNs) {
    passage = ring.slowest(std::ranges::min(ring.times_of_turns(bytes, kShortTurns)));
  }
  return {.startup = from_ns(startup),
          .ns_per_byte = std::max(passage - startup, 1.0) / static_cast<double>(bytes),
          .reduce_ns_per_byte = kSharedMemoryLink.reduce_ns_per_byte};
}

}  // namespace sluice
