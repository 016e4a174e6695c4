#include "drivers/mpi/mpi_link.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/median.h"
#include "drivers/mpi/mpi_tags.h"
#include "drivers/realtime/clock.h"

namespace sluice {
namespace {

// All processes in a ring: each sends to the next one and receives from the previous one.
class Ring {
 public:
  explicit Ring(MPI_Comm comm) : comm_(comm) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &size);
    next_ = (rank + 1) % size;
    previous_ = (rank + size - 1) % size;
  }

  // Nanoseconds of each turn. The first turn is left out: it may find a token bucket full or a
  // connection slow to start.
  std::vector<double> times_of_turns(std::size_t bytes, int count) const {
    std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const auto length = static_cast<int>(bytes);
    const Clock clock;
    std::vector<double> times;
    for (int turn = 0; turn <= count; ++turn) {
      const Time begin = clock.now();
      MPI_Sendrecv(out.data(), length, MPI_BYTE, next_, kMeetTag, in.data(), length, MPI_BYTE,
                   previous_, kMeetTag, comm_, MPI_STATUS_IGNORE);
      if (turn > 0) {
        times.push_back(to_us(clock.now() - begin) * 1e3);
      }
    }
    return times;
  }

  double slowest(double own) const {
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return own;
  }

 private:
  const MPI_Comm comm_;
  int next_ = 0;
  int previous_ = 0;
};

}  // namespace

LinkCost measure_ring(MPI_Comm comm) {
  constexpr std::size_t kShort = 256 << 10;  // long enough to wait for its receiver
  constexpr std::size_t kLong = 4 << 20;
  constexpr double kEnoughNs = 1e7;
  constexpr int kTurns = 8;
  constexpr int kLongTurns = 3;    // all processors are busy meanwhile, as MPI waits
  constexpr int kShortTurns = 40;  // in one of them all processors are ready
  const Ring ring(comm);
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
