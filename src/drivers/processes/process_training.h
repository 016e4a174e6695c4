#pragma once

#include <memory>
#include <optional>

#include "drivers/processes/carrier.h"
#include "drivers/processes/process_world.h"
#include "drivers/realtime/phase.h"
#include "drivers/realtime/warn.h"

namespace sluice {

// Every host is a process; this process is the host of its rank. Communication runs on the calling
// thread, each of the host's workers on a thread of its own. On rank 0, `warn` gets warnings of
// what takes suspiciously long.
//
// Returns when every worker of the job has the parameters after its last iteration and nothing is
// in flight. The result is the signal that stopped them early, if one did. If this process fails or
// a peer is lost, the world fails. After this, processes expect heartbeats of each other.
std::optional<int> train_processes(ProcessWorld& world, const Phase& phase, const Carrier& carrier,
                                   const Warn& warn);

// The same, but it has only begun when this returns, in all processes; the phase and what it refers
// to live on until it is over. Several may run at a time.
std::unique_ptr<RunningPhase> begin_processes(ProcessWorld& world, const Phase& phase,
                                              const Carrier& carrier, const Warn& warn);

}  // namespace sluice
