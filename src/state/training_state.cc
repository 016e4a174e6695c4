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
      if (strategy.learners_update && strategy.learners_can_step()) {
        learner.step_locally(rule, LayerTurns(strategy.cadence, chunks));
      } else if (strategy.learners_update) {
        learner.update_with(rule, BatchShare::all(topology.workers()));
      }
      if (strategy.learners_pack) {
        learner.pack_with(strategy, sender_of(strategy, topology, rule), chunks);
      }
      std::vector<std::span<float>> gradients = replica->second.slots.all();
      if (strategy.sums_aside()) {
        buffers_.emplace_back(learner.parameters().size());
        gradients.push_back(buffers_.back().values());
      }
      add(node, learner.parameters(), std::move(gradients));
      if (strategy.learners_factor()) {
        workspaces_.at(node).leave_products_to(
            {strategy, layers_, [&learner](std::span<const Range> matrices) {
               learner.find_right_factors(matrices);
             }});
      }
      if (traits_of(strategy.algorithm).sends == Sends::kOuterGradients) {
        workspaces_.at(node).keep_global(strategy.cadence);
      }
    } else {
      ZeroedBuffer parameters =
          server_parameters(first.parameters, chunks, topology.server_index(node));
      ZeroedBuffer sums(parameters.values().size());
      add(node, parameters.values(), {sums.values()});
      buffers_.push_back(std::move(parameters));
      buffers_.push_back(std::move(sums));
    }
  }
  check(workers_.size() == learners.size(), "every learner belongs to a worker");
}

std::vector<Remembered> TrainingState::remembered(NodeId node, const ChunkMap& chunks,
                                                  const Topology& topology) {
  std::vector<Remembered> all = workspace(node).remembered();
  if (topology.is_worker(node)) {
    return all;
  }
  for (Remembered& one : all) {
    const std::span<float> whole = one.parts.front();
    if (whole.size() == 1) {
      continue;
    }
    one.parts.clear();
    for (const Chunk& chunk : chunks.all()) {
      if (chunk.server == topology.server_index(node)) {
        one.parts.push_back(whole.subspan(static_cast<std::size_t>(chunk.range.begin),
                                          static_cast<std::size_t>(chunk.range.size())));
      }
    }
  }
  return all;
}

}  // namespace sluice
