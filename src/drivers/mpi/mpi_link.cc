#include "drivers/mpi/mpi_link.h"

#include <cstddef>
#include <vector>

#include "drivers/mpi/mpi_tags.h"
#include "drivers/processes/ring_cost.h"
#include "drivers/realtime/clock.h"

namespace sluice {
namespace {

// The first turn is left out: it may find a token bucket full or a connection slow to start.
std::vector<double> times_of_turns(MPI_Comm comm, std::size_t bytes, int count) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  const auto length = static_cast<int>(bytes);
  const Clock clock;
  std::vector<double> times;
  for (int turn = 0; turn <= count; ++turn) {
    const Time begin = clock.now();
    MPI_Sendrecv(out.data(), length, MPI_BYTE, (rank + 1) % size, kMeetTag, in.data(), length,
                 MPI_BYTE, (rank + size - 1) % size, kMeetTag, comm, MPI_STATUS_IGNORE);
    if (turn > 0) {
      times.push_back(to_us(clock.now() - begin) * 1e3);
    }
  }
  return times;
}

}  // namespace

LinkCost measure_ring(MPI_Comm comm) {
  return measure_ring(
      {.times_of_turns = [&](std::size_t bytes,
                             int count) { return times_of_turns(comm, bytes, count); },
       .slowest =
           [&](double own) {
             MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, comm);
             return own;
           }});
}

}  // namespace sluice
