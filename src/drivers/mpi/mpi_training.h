#pragma once

#include <optional>

#include "drivers/mpi/mpi_world.h"
#include "drivers/realtime/phase.h"

namespace sluice {

// Every host is a process of its own, and this one that of its rank: communication runs on the
// thread that calls, each of the host's workers on another. `warn` hears on rank 0 of what takes
// suspiciously long.
//
// Returns when every worker of the job has the parameters after its last iteration and nothing is
// on its way any more: the signal that stopped them before the end, if one did. A failure of this
// process is thrown here, and so is the loss of a peer; the caller then aborts the job.
std::optional<int> train_on_mpi(MpiWorld& world, const Phase& phase, const Warn& warn);

}  // namespace sluice
