#include "drivers/processes/ring_cost.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "drivers/realtime/clock.h"

namespace sluice {
namespace {

// Nanoseconds of each of so many turns. The first one is left out: it may find a token bucket full
// or a connection slow to start.
std::vector<double> times_of_turns(const Ring& ring, std::size_t bytes, int count) {
  const std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  const Clock clock;
  std::vector<double> times;
  for (int turn = 0; turn <= count; ++turn) {
    const Time begin = clock.now();
    ring.turn(out, in);
    if (turn > 0) {
      times.push_back(to_us(clock.now() - begin) * 1e3);
    }
  }
  return times;
}

}  // namespace

LinkCost measure_ring(const Ring& ring) {
  constexpr std::size_t kShort = 256 << 10;  // long enough to wait for its receiver
  constexpr std::size_t kLong = 4 << 20;
  constexpr double kEnoughNs = 1e7;
  constexpr int kTurns = 8;
  constexpr int kLongTurns = 3;    // all processors are busy meanwhile, as MPI waits
  constexpr int kShortTurns = 40;  // in one of them all processors are ready
  const double startup = ring.slowest(median_of(times_of_turns(ring, 0, 20)));
  std::size_t bytes = kShort;
  double passage = ring.slowest(std::ranges::min(times_of_turns(ring, bytes, kTurns)));
  while (passage < kEnoughNs && bytes < kLong) {
    const int turns = 4 * passage < kEnoughNs ? kTurns : kLongTurns;
    bytes *= 4;
    passage = ring.slowest(std::ranges::min(times_of_turns(ring, bytes, turns)));
  }
  if (passage < kEnoughNs) {
    passage = ring.slowest(std::ranges::min(times_of_turns(ring, bytes, kShortTurns)));
  }
  return {.startup = from_ns(startup),
          .ns_per_byte = std::max(passage - startup, 1.0) / static_cast<double>(bytes),
          .reduce_ns_per_byte = kSharedMemoryLink.reduce_ns_per_byte};
}

}  // namespace sluice
