#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/result.h"
#include "formats/safetensors.h"
#include "model/job.h"
#include "partition/chunk_map.h"
#include "state/training_state.h"

namespace sluice {

// The nodes of a run whose state was saved.
struct FormerNodes {
  Topology topology;
  ChunkMap chunks;
};

// The nodes that take it up, before their first phase: those of these hosts.
struct TakingNodes {
  TrainingState& state;
  const Job& job;
  const ChunkMap& chunks;
  std::vector<HostId> hosts;
};

// Gives nodes the state of a run in lock step that had other workers, servers or hosts:
//
//   parameters     those of worker 0, to all workers, and to servers for their shards
//   optimizer.*    of worker 0, to all workers that update; of servers, each value from the server
//                  that kept it to the one that keeps it now
//   residual       of workers: to each that packs the same, so much that the mean over all workers
//                  is what it was; of servers: as optimizer.*, scaled as sums over more workers are
//   learner.*      of worker 0, to all workers
class Resharding {
 public:
  Resharding(FormerNodes from, TakingNodes to);

  // What a former host has saved, each once, the first one first. It may come from anyone.
  Result<void> take(HostId host, std::span<const StoredTensor> saved);

 private:
  // Values of one array of a node, and where in the whole array they are.
  struct Part {
    Range range;
    std::span<float> values;
  };
  // In ascending order, without overlap.
  using Parts = std::vector<Part>;
  struct Node {
    NodeId id;
    bool leads = true;  // updates and packs, for itself or for all workers of its machine
    std::map<std::string, Parts> arrays = {};
  };

  void add_node(NodeId id);
  Result<void> take_from_worker(std::size_t rank, const std::string& name,
                                const StoredTensor& tensor);
  Result<void> take_from_server(std::size_t server, const std::string& name,
                                const StoredTensor& tensor);
  Result<void> recall(std::span<const StoredTensor> of_first_host) const;
  // What the array has of the range <- values; or, with add(), that + scale * values.
  static void put(const Range& range, std::span<const float> values, const Parts& array);
  static void add(const Range& range, std::span<const float> values, float scale,
                  const Parts& array);

  FormerNodes from_;
  TakingNodes to_;
  std::vector<Node> workers_;
  std::vector<Node> servers_;
  std::vector<float> parameters_;  // of worker 0
};

}  // namespace sluice
