#pragma once

#include <optional>

#include "drivers/mpi/mpi_world.h"
#include "drivers/realtime/phase.h"

namespace sluice {

// Every host is a process; this process is the host of its rank. Communication runs on the calling
// thread, each of the host's workers on a thread of its own. On rank 0, `warn` gets warnings of
// what takes suspiciously long.
//
// Returns when every worker of the job has the parameters after its last iteration and nothing is
// in flight. The result is the signal that stopped them early, if one did. If this process fails or
// a peer is lost, the world fails. After this, processes expect heartbeats of each other.
std::optional<int> train_on_mpi(MpiWorld& world, const Phase& phase, const Warn& warn);

}  // namespace sluice
