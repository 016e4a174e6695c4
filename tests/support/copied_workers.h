#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "state/saved_state.h"

namespace sluice::testing {

struct WorkersAndChunks {
  const Topology& topology;
  const ChunkMap& chunks;
};

// Gives the workers of a host all that those of another one remember; servers treat them alike.
inline void copy_workers(TrainingState& state, const WorkersAndChunks& of, HostId from, HostId to) {
  const auto prefix = [&](HostId host, std::size_t worker) {
    return saved_prefix(of.topology.nodes_on(host)[worker], of.topology);
  };
  std::vector<TensorCopy> copies = copy_state({state, of.topology, of.chunks, false, from});
  std::vector<StoredTensor> views;
  for (TensorCopy& copy : copies) {
    std::size_t worker = 0;
    while (!copy.name.starts_with(prefix(from, worker))) {
      ++worker;
    }
    copy.name.replace(0, prefix(from, worker).size(), prefix(to, worker));
    views.push_back(copy.view());
  }
  const auto restored = restore_state(views, {state, of.topology, of.chunks, false, to});
  check(static_cast<bool>(restored), "one worker remembers what another does");
  for (std::size_t server = 0; server < of.topology.servers(); ++server) {
    for (std::size_t w = 0; w < of.topology.workers_per_host(); ++w) {
      state.workspace(of.topology.server(server))
          .treat_alike(of.topology.nodes_on(to)[w], of.topology.nodes_on(from)[w]);
    }
  }
}

}  // namespace sluice::testing
