#pragma once

#include <mpi.h>

#include "model/job.h"

namespace sluice {

// See ProcessWorld::measure_link(). All processes of the communicator call this.
LinkCost measure_ring(MPI_Comm comm);

}  // namespace sluice
