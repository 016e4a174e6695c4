#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "compute/gradient_slots.h"
#include "compute/learner.h"
#include "compute/workspace.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "partition/chunk_map.h"

namespace sluice {

// The numbers of all nodes of a run: parameters, gradients, velocities. They stay from the first
// iteration to the last, while the protocols that work on them may be replaced in between.
class TrainingState {
 public:
  // Servers begin with the first learner's parameters; each keeps its chunks of this map, so where
  // there are servers later protocols must be of the same map.
  TrainingState(const Topology& topology, std::span<const std::unique_ptr<Learner>> learners,
                const ChunkMap& chunks, const Strategy& strategy, const UpdateRule& rule);

  std::span<const std::unique_ptr<Learner>> learners() const { return learners_; }  // by rank
  const GradientSlots& slots(NodeId worker) const { return slots_[worker.index()]; }
  Workspace& workspace(NodeId node) { return workspaces_[node.index()]; }

 private:
  std::span<const std::unique_ptr<Learner>> learners_;
  std::deque<GradientSlots> slots_;  // by worker
  std::vector<ZeroedBuffer> server_parameters_;
  std::vector<Workspace> workspaces_;  // by node
};

}  // namespace sluice
