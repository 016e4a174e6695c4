#pragma once

#include "base/result.h"
#include "model/topology.h"
#include "session/process_group.h"
#include "session/specs.h"

// What can be said of a training run before its data is read.
namespace sluice {

Topology topology_of(const HostsSpec& hosts, std::size_t hosts_per_machine);

// A sum by the driver is either MPI's or made in shared memory.
Result<void> check_collective(const Strategy& strategy, const Topology& topology,
                              const ProcessGroup& group);

Result<void> check_spec(const TrainSpec& spec, const ProcessGroup& group);

}  // namespace sluice
