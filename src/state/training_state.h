#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/zeroed_buffer.h"
#include "learners/learner.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "state/gradient_slots.h"
#include "state/workspace.h"

namespace sluice {

// The numbers of all nodes of a run, or of one host: parameters, gradients, velocities. They last
// from the first iteration to the last, while the protocols that use them may be replaced.
class TrainingState {
 public:
  // A model before its first iteration.
  struct FirstModel {
    std::span<const Layer> layers;
    std::span<const float> parameters;
  };

  // The learners belong to the workers among the nodes, by rank. Servers begin with these
  // parameters, and each keeps its chunks of this map. So if there are servers, later protocols
  // must use the same map.
  TrainingState(const Topology& topology, std::span<const std::unique_ptr<Learner>> learners,
                const FirstModel& first, const ChunkMap& chunks, const Strategy& strategy,
                const UpdateRule& rule, std::optional<HostId> host = std::nullopt);
  // The same with the first learner's parameters.
  TrainingState(const Topology& topology, std::span<const std::unique_ptr<Learner>> learners,
                const ChunkMap& chunks, const Strategy& strategy, const UpdateRule& rule,
                std::optional<HostId> host = std::nullopt);

  const std::vector<Layer>& layers() const { return layers_; }
  Learner& learner(NodeId worker) const { return workers_.at(worker).learner; }
  const GradientSlots& slots(NodeId worker) const { return workers_.at(worker).slots; }
  Workspace& workspace(NodeId node) { return workspaces_.at(node); }
  // What the node remembers: of a server, only its chunks of the map that the state was made with.
  std::vector<Remembered> remembered(NodeId node, const ChunkMap& chunks, const Topology& topology);

 private:
  struct Replica {
    Replica(Learner& learner, std::size_t gradients)
        : learner(learner), slots(learner, gradients) {}

    Learner& learner;
    GradientSlots slots;
  };

  std::vector<Layer> layers_;
  std::unordered_map<NodeId, Replica> workers_;
  std::vector<ZeroedBuffer> buffers_;  // of servers, and for sums aside
  std::unordered_map<NodeId, Workspace> workspaces_;
};

}  // namespace sluice
