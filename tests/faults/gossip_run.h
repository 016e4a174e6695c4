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
  GossipRun(const Job& of, const UpdateRule& rule, Iteration iterations, std::uint64_t seed)
      : job(of),
        chunks(assemble(job).chunks),
        gossips(job.topology.workers()),
        gone(chunks->size()),
        nodes(make_nodes()),
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
    return sum + gone[chunk.index()];
  }

  // The host that was lost is there again, with what the donor has and half of its weight.
  void revive(HostId host, HostId donor) {
    for (std::size_t c = 0; c < gone.size(); ++c) {
      gone[c] += gossips[host.index()]->weight(ChunkId(c));
    }
    nodes[host.index()] = make_node(job, host.index());
    const auto given = nodes[donor.index()]->weights();
    const auto taken = nodes[host.index()]->weights();
    for (std::size_t c = 0; c < gone.size(); ++c) {
      given[c] /= 2;
      taken[c] = given[c];
    }
    world.revive(host, *nodes[host.index()], donor);
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::vector<const GoSgdWorker*> gossips;
  std::vector<double> gone;  // weights of lost ones that were replaced
  std::vector<std::unique_ptr<Worker>> nodes;
  std::vector<std::unique_ptr<Learner>> learners;
  VirtualNumbers numbers;
  testing::ShuffledWorld world;

 private:
  std::unique_ptr<Worker> make_node(const Job& of, std::size_t rank) {
    return std::make_unique<Worker>(
        of, chunks, NodeId(rank), [&](const auto& part, auto map, NodeId self, Completion& done) {
          auto gossip = std::make_unique<GoSgdWorker>(part, std::move(map), self, done);
          gossips[rank] = gossip.get();
          return gossip;
        });
  }
  std::vector<std::unique_ptr<Worker>> make_nodes() {
    std::vector<std::unique_ptr<Worker>> made;
    for (std::size_t w = 0; w < job.topology.workers(); ++w) {
      made.push_back(make_node(job, w));
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
