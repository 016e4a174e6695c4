#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "nodes/assembly.h"
#include "support/shuffled.h"

// What the tests of runs in a shuffled world have in common.
namespace sluice::testing {

inline const std::vector<std::int64_t> kLayers{5, 40, 0, 17};
inline constexpr Iteration kIterations = 6;

inline std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }

// Workers that take local steps, with layers in several chunks and segments.
inline Job local_job(const Cadence& cadence, std::size_t workers) {
  Job job;
  job.layers = toy_learners(kLayers, 1).front()->layers();
  job.topology = Topology(workers, 1, 0);
  job.strategy.algorithm = Algorithm::kLocal;
  job.strategy.exchange = Exchange::kAllReduce;
  job.strategy.cadence = cadence;
  job.strategy.slice_params = 16;
  job.strategy.segment_params = 9;
  job.strategy.credit = 150;
  job.strategy.peer_credit = 100;
  return job;
}

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

  // Nobody stands still, and no host keeps anything back.
  bool run() { return world.run() && is_at_rest(); }
  // The same, further.
  bool run_on(Iteration iterations) { return world.run_on(iterations) && is_at_rest(); }

  std::vector<float> parameters(std::size_t rank) const {
    const auto values = learners[rank]->parameters();
    return {values.begin(), values.end()};
  }
  // How many finished backward passes the first worker is ahead of the last.
  Iteration lead() const {
    std::vector<Iteration> iterations;
    for (std::size_t w = 0; w < learners.size(); ++w) {
      iterations.push_back(world.iteration(w));
    }
    const auto [min, max] = std::ranges::minmax(iterations);
    return max - min;
  }

  Assembly assembly;
  std::vector<std::unique_ptr<Learner>> learners;
  VirtualNumbers numbers;
  ShuffledWorld world;

 private:
  bool is_at_rest() const {
    return std::ranges::all_of(assembly.hosts, [](const auto& host) {
      return host->egress().waiting() == 0 && host->egress().in_flight() == 0;
    });
  }
};

}  // namespace sluice::testing
