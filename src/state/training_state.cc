#include "state/training_state.h"

#include <utility>

#include "base/check.h"
#include "state/server_state.h"

namespace sluice {

TrainingState::TrainingState(const Topology& topology,
                             std::span<const std::unique_ptr<Learner>> learners,
                             const ChunkMap& chunks, const Strategy& strategy,
                             const UpdateRule& rule, std::optional<HostId> host)
    : TrainingState(topology, learners,
                    {learners.front()->layers(), learners.front()->parameters()}, chunks, strategy,
                    rule, host) {}

TrainingState::TrainingState(const Topology& topology,
                             std::span<const std::unique_ptr<Learner>> learners,
                             const FirstModel& first, const ChunkMap& chunks,
                             const Strategy& strategy, const UpdateRule& rule,
                             std::optional<HostId> host)
    : layers_(first.layers.begin(), first.layers.end()) {
  const auto add = [&](NodeId node, std::span<float> parameters,
                       std::vector<std::span<float>> gradients) {
    workspaces_.try_emplace(node, parameters, std::move(gradients), rule, strategy, topology,
                            layers_);
  };
  for (std::size_t n = 0; n < topology.nodes(); ++n) {
    const NodeId node(n);
    if (host && topology.host_of(node) != *host) {
      continue;
    }
    if (topology.is_worker(node)) {
      check(workers_.size() < learners.size(), "every worker has a learner");
      Learner& learner = *learners[workers_.size()];
      const auto replica = workers_.try_emplace(node, learner, strategy.gradient_slots()).first;
      if (strategy.learners_update) {
        learner.update_with(rule, BatchShare::all(topology.workers()));
      }
      add(node, learner.parameters(), replica->second.slots.all());
    } else {
      ZeroedBuffer parameters =
          server_parameters(first.parameters, chunks, topology.server_index(node));
      ZeroedBuffer sums(parameters.values().size());
      add(node, parameters.values(), {sums.values()});
      server_buffers_.push_back(std::move(parameters));
      server_buffers_.push_back(std::move(sums));
    }
  }
  check(workers_.size() == learners.size(), "every learner belongs to a worker");
}

}  // namespace sluice
