#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "nodes/assembly.h"
#include "support/shuffled.h"

namespace sluice::testing {

inline const std::vector<std::int64_t> kLayers{5, 40, 0, 17};
inline constexpr Iteration kIterations = 6;

// A run of a job in a shuffled world, whose learners have kLayers.
struct ShuffledRun {
  ShuffledRun(const Job& job, const UpdateRule& rule, std::uint64_t seed,
              Iteration iterations = kIterations)
      : assembly(assemble(job)),
        learners(toy_learners(kLayers, job.topology.workers())),
        numbers{.learners = learners,
                .chunks = assembly.chunks.get(),
                .rule = rule,
                .strategy = job.strategy},
        world(assembly.job, assembly.protocols, numbers, iterations, seed) {}

  // Nobody stands still, and no host that goes on keeps anything back.
  bool run() { return world.run() && is_at_rest(); }
  // The same, further.
  bool run_on(Iteration iterations) { return world.run_on(iterations) && is_at_rest(); }

  // The host that was lost is there again, with what the donor has; for run_on().
  void revive(HostId host, HostId donor, Iteration iteration) {
    Job job = assembly.job;
    job.first = iteration;
    assembly.hosts[host.index()] = std::make_unique<Host>(job, assembly.chunks, host);
    assembly.protocols[host.index()] = assembly.hosts[host.index()].get();
    for (std::size_t w = 0; w < job.topology.workers_per_host(); ++w) {
      std::ranges::copy(assembly.kept(job.topology.nodes_on(donor)[w]),
                        assembly.kept(job.topology.nodes_on(host)[w]).begin());
    }
    world.revive(host, *assembly.protocols[host.index()], donor);
  }

  // The hosts have new protocols; for run_on(). The chunks stay where they were.
  void go_on_with(Job job) {
    former.push_back(assembly.chunks);
    assembly = assemble(std::move(job));
    world.replace(assembly.protocols);
  }

  std::vector<float> parameters(std::size_t rank) const {
    const auto values = learners[rank]->parameters();
    return {values.begin(), values.end()};
  }
  // How many finished backward passes the first living worker is ahead of the last.
  Iteration lead() const {
    std::vector<Iteration> iterations;
    for (std::size_t w = 0; w < learners.size(); ++w) {
      if (!world.outages().is_dead(assembly.job.topology.host_of(NodeId(w)))) {
        iterations.push_back(world.iteration(w));
      }
    }
    const auto [min, max] = std::ranges::minmax(iterations);
    return max - min;
  }

  Assembly assembly;
  std::vector<std::shared_ptr<const ChunkMap>> former;  // that the world still knows
  std::vector<std::unique_ptr<Learner>> learners;
  VirtualNumbers numbers;
  ShuffledWorld world;

 private:
  bool is_at_rest() const {
    for (std::size_t h = 0; h < assembly.hosts.size(); ++h) {
      const Egress& egress = assembly.hosts[h]->egress();
      const bool rests = egress.waiting() == 0 && egress.in_flight() == 0;
      if (!rests && !world.outages().is_out(HostId(h))) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace sluice::testing
