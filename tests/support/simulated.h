#pragma once

#include <memory>
#include <vector>

#include "drivers/virtual/simulator.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "nodes/assembly.h"
#include "support/matrices.h"

namespace sluice::testing {

// A job on a simulated cluster, wired as in the command line.
struct Simulated {
  Assembly assembly;
  SimulationResult result;
};

inline Job job_for(const Profile& profile, const Cluster& cluster, const Strategy& strategy) {
  Job job;
  job.layers = profile.layout();
  job.topology = cluster.topology;
  job.strategy = strategy;
  job.server_threads = cluster.server_threads;
  job.link = cluster.link();
  if (cluster.allreduce) {
    job.strategy.collective = Collective::kNative;
  }
  return job;
}

inline Simulated run_simulated(const Profile& profile, const Cluster& cluster, const Job& job,
                               Iteration iterations = 10, Observer* observer = nullptr,
                               const VirtualNumbers* numbers = nullptr) {
  const Strategy& strategy = job.strategy;
  Simulated run;
  run.assembly = assemble(job);
  VirtualNumbers with_chunks;
  if (numbers != nullptr) {
    with_chunks = *numbers;
    with_chunks.chunks = run.assembly.chunks.get();
    with_chunks.strategy = strategy;
  }
  run.result = simulate({.profile = profile,
                         .cluster = cluster,
                         .hosts = run.assembly.protocols,
                         .iterations = iterations,
                         .channel_order = strategy.order,
                         .observer = observer,
                         .numbers = numbers != nullptr ? &with_chunks : nullptr});
  return run;
}

inline Simulated run_simulated(const Profile& profile, const Cluster& cluster,
                               const Strategy& strategy, Iteration iterations = 10,
                               Observer* observer = nullptr,
                               const VirtualNumbers* numbers = nullptr) {
  return run_simulated(profile, cluster, job_for(profile, cluster, strategy), iterations, observer,
                       numbers);
}

inline Profile profile_of(const std::vector<std::int64_t>& params, double forward_us,
                          double backward_us) {
  Profile profile;
  profile.name = "made";
  for (std::size_t i = 0; i < params.size(); ++i) {
    profile.layers.push_back(
        {"L" + std::to_string(i + 1), params[i], from_us(forward_us), from_us(backward_us)});
    profile.layers.back().matrix = some_matrix(params[i]);
  }
  return profile;
}

inline Strategy point(Exchange exchange, Partition partition, Order order,
                      std::int64_t slice = 50'000) {
  Strategy strategy;
  strategy.exchange = exchange;
  strategy.partition = partition;
  strategy.order = order;
  strategy.slice_params = slice;
  return strategy;
}

}  // namespace sluice::testing
