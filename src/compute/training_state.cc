#include "compute/training_state.h"

#include "base/check.h"
#include "compute/server_state.h"

namespace sluice {

TrainingState::TrainingState(const Topology& topology,
                             std::span<const std::unique_ptr<Learner>> learners,
                             const ChunkMap& chunks, const Strategy& strategy,
                             const UpdateRule& rule)
    : learners_(learners) {
  check(learners.size() == topology.workers(), "every worker has its learner");
  for (const auto& learner : learners) {
    slots_.emplace_back(*learner, strategy.gradient_slots());
    workspaces_.emplace_back(learner->parameters(), slots_.back().all(), rule, strategy,
                             topology.workers());
  }
  for (std::size_t s = 0; s < topology.servers(); ++s) {
    server_parameters_.push_back(server_parameters(learners.front()->parameters(), chunks, s));
    workspaces_.emplace_back(server_parameters_.back().values(), std::vector<std::span<float>>{},
                             rule, strategy, topology.workers());
  }
}

}  // namespace sluice
