#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"
#include "partition/chunk_map.h"
#include "state/training_state.h"

namespace sluice {

// The nodes of a host between two phases.
struct HostState {
  TrainingState& state;
  const Topology& topology;
  const ChunkMap& chunks;
  bool has_servers = false;  // that the strategy uses
  HostId host;
};

// "worker.3." or "server.0.": before the names of what the node remembers.
std::string saved_prefix(NodeId node, const Topology& topology);

// A copy of all that they remember, by node and name. What is all zeros is left out. An earlier
// copy that nobody needs any more lends its memory: new memory would take longer than the copy.
std::vector<TensorCopy> copy_state(const HostState& from, std::vector<TensorCopy> earlier = {});
// Gives them such a copy, of a host with the same nodes, before the first phase. It may come from
// anyone.
Result<void> restore_state(std::span<const StoredTensor> saved, const HostState& to);
// Gives its workers the parameters that the servers of another host had, likewise.
Result<void> copy_servers(std::span<const StoredTensor> saved, HostId from, const HostState& to);

}  // namespace sluice
