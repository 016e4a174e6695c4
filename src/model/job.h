#pragma once

#include <optional>
#include <vector>

#include "model/layer.h"
#include "model/strategy.h"
#include "model/topology.h"

namespace sluice {

// What it takes to move and to add: alpha, beta and gamma of the literature.
struct LinkCost {
  Duration startup{0};            // alpha, of one message
  double ns_per_byte = 0;         // beta, on the wire
  double reduce_ns_per_byte = 0;  // gamma, adding two operands
  Duration message{0};            // that the wire or a processor is busy with a message, besides
  double code_ns_per_byte = 0;    // packing or unpacking a byte of floats, on one thread

  double gbps() const { return 8 / ns_per_byte; }
  bool operator==(const LinkCost&) const = default;
};

// A guess for hosts that share one memory.
inline const LinkCost kSharedMemoryLink{from_us(20), 0.1, 0.1};

// Algorithm local-steps: the exchange of a chunk that began with the parameters of this iteration,
// and whose sum no worker has.
struct GivenUpSum {
  ChunkId chunk;
  Iteration begun = 0;

  bool operator==(const GivenUpSum&) const = default;
};

// What is trained, where and how: all that the protocol core needs to know.
struct Job {
  std::vector<Layer> layers;
  Topology topology;
  Strategy strategy;
  std::vector<LayerGroup> groups = {};  // partition merged: see make_chunks
  Iteration first = 0;                  // where this job takes over, with the parameters in place
  std::vector<Iteration> starts = {};   // by worker, where they do not all begin at `first`
  std::optional<HostId> here = {};      // the one host that this process runs; none: all of them
  LinkCost link = kSharedMemoryLink;    // what the choice of collectives goes by
  int server_threads = 1;               // work that a host does at a time
  std::vector<HostId> absent = {};      // that it goes on without, in ascending order
  std::vector<GivenUpSum> given_up = {};

  Iteration start_of(NodeId worker) const {
    return starts.empty() ? first : starts.at(worker.index());
  }
};

}  // namespace sluice
