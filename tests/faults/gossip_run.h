#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nodes/assembly.h"
#include "nodes/gossip_worker.h"
#include "nodes/worker.h"
#include "support/shuffled_run.h"

namespace sluice::faults {

// GoSGD's workers in a shuffled world, one on each host and without the egress of a host, so that
// their weights can be seen.
struct GossipRun {
  GossipRun(const Job& job, const UpdateRule& rule, Iteration iterations, std::uint64_t seed)
      : chunks(assemble(job).chunks),
        nodes(make_nodes(job)),
        learners(testing::toy_learners(testing::kLayers, job.topology.workers())),
        numbers{
            .learners = learners, .chunks = chunks.get(), .rule = rule, .strategy = job.strategy},
        world(job, protocols(), numbers, iterations, seed) {
    world.has_egress = false;
  }
  GossipRun(const GossipRun&) = delete;
  GossipRun& operator=(const GossipRun&) = delete;

  // Of all workers, in flight and lost.
  double weight(ChunkId chunk) const {
    double sum = world.flights().weight_in_flight(chunk) + world.flights().weight_lost(chunk);
    for (const GoSgdWorker* gossip : gossips) {
      sum += gossip->weight(chunk);
    }
    return sum;
  }

  std::shared_ptr<const ChunkMap> chunks;
  std::vector<const GoSgdWorker*> gossips;
  std::vector<std::unique_ptr<Worker>> nodes;
  std::vector<std::unique_ptr<Learner>> learners;
  VirtualNumbers numbers;
  testing::ShuffledWorld world;

 private:
  std::vector<std::unique_ptr<Worker>> make_nodes(const Job& job) {
    std::vector<std::unique_ptr<Worker>> made;
    for (std::size_t w = 0; w < job.topology.workers(); ++w) {
      made.push_back(std::make_unique<Worker>(
          job, chunks, NodeId(w), [&](const auto& of, auto map, NodeId self, Completion& done) {
            auto gossip = std::make_unique<GoSgdWorker>(of, std::move(map), self, done);
            gossips.push_back(gossip.get());
            return gossip;
          }));
    }
    return made;
  }
  std::vector<Protocol*> protocols() const {
    std::vector<Protocol*> all;
    for (const auto& node : nodes) {
      all.push_back(node.get());
    }
    return all;
  }
};

}  // namespace sluice::faults
