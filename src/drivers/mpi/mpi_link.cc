#include "drivers/mpi/mpi_link.h"

#include "drivers/mpi/mpi_tags.h"
#include "drivers/processes/ring_cost.h"

namespace sluice {

LinkCost measure_ring(MPI_Comm comm) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const auto turn = [=](std::span<const std::byte> out, std::span<std::byte> in) {
    const auto length = static_cast<int>(out.size());
    MPI_Sendrecv(out.data(), length, MPI_BYTE, (rank + 1) % size, kMeetTag, in.data(), length,
                 MPI_BYTE, (rank + size - 1) % size, kMeetTag, comm, MPI_STATUS_IGNORE);
  };
  const auto slowest = [=](double own) {
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, comm);
    return own;
  };
  return measure_ring({.turn = turn, .slowest = slowest});
}

}  // namespace sluice
