#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "model/strategy.h"
#include "model/topology.h"

// Runs that go on from the checkpoint of one that had other workers, servers or hosts.
namespace sluice {

std::vector<HostId> all_hosts(const Topology& topology);

// What a manifest says of the hosts of its run: as text, and as numbers.
std::string topology_text(const Topology& topology);
Json json_of(const Topology& topology);

// The hosts of the run that wrote it, if they are others; an error if these cannot go on with it.
Result<std::optional<Topology>> former_hosts(const CheckpointManifest& manifest,
                                             const Topology& topology, Strategy strategy);

// Whose files a process needs then. All workers have the replica of the first one; what servers
// keep, and what packing has lost, may be anywhere.
std::vector<HostId> former_files(const Topology& former, const Strategy& strategy);

// "checkpoint of 4 workers ... taken up by 3 ...", and what that means.
std::string taken_up_text(const Topology& former, const Topology& now, const Strategy& strategy);

}  // namespace sluice
