#include "session/training_phase.h"

#include <algorithm>

#include "nodes/host.h"

namespace sluice {

Phase phase_of(const Assembly& assembly, TrainingState& state, std::span<const Iteration> starts,
               Iteration last, const Clock& clock, Observer* observer) {
  const Job& job = assembly.job;
  return {
      .topology = job.topology,
      .chunks = *assembly.chunks,
      .strategy = job.strategy,
      .rules = *assembly.rules,
      .hosts = assembly.protocols,
      .state = state,
      .first = std::ranges::min(starts),
      .last = last,
      .clock = clock,
      .observer = observer,
      .on_step = {},
      .on_boundary = {},
      .outlives =
          [strategy = job.strategy, topology = job.topology, taken_over = job.first](HostId lost) {
            return why_it_ends(strategy, topology, taken_over, lost).empty();
          },
      .starts = starts};
}

std::vector<Iteration> starts_of(const Job& job) {
  std::vector<Iteration> starts;
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    starts.push_back(job.start_of(job.topology.worker(w)));
  }
  return starts;
}

}  // namespace sluice
