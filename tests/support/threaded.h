#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drivers/threads/thread_training.h"
#include "nodes/assembly.h"

namespace sluice::testing {

inline Job job_for(const std::vector<std::unique_ptr<Learner>>& learners, const Topology& topology,
                   const Strategy& strategy) {
  Job job;
  job.layers = learners.front()->layers();
  job.topology = topology;
  job.strategy = strategy;
  return job;
}

inline TrainingState state_for(const std::vector<std::unique_ptr<Learner>>& learners,
                               const Assembly& assembly, const UpdateRule& rule) {
  return {assembly.job.topology, learners, *assembly.chunks, assembly.job.strategy, rule};
}

// Runs the iterations from the job's first one, or from another, up to `last`.
inline void run_phase(const Assembly& assembly, TrainingState& state, Iteration last,
                      Observer* observer = nullptr,
                      const std::optional<Offloading>& offloading = std::nullopt,
                      std::optional<Iteration> first = std::nullopt) {
  const Clock clock;
  train_on_threads({.topology = assembly.job.topology,
                    .chunks = *assembly.chunks,
                    .strategy = assembly.job.strategy,
                    .rules = *assembly.rules,
                    .hosts = assembly.protocols,
                    .state = state,
                    .first = first.value_or(assembly.job.first),
                    .last = last,
                    .clock = clock,
                    .observer = observer,
                    .on_step = {},
                    .on_boundary = {}},
                   offloading);
}

// Trains the learners on threads, wired as in the command line.
inline Assembly run_threaded(const std::vector<std::unique_ptr<Learner>>& learners, const Job& job,
                             const UpdateRule& rule, Iteration iterations,
                             Observer* observer = nullptr) {
  Assembly assembly = assemble(job);
  TrainingState state = state_for(learners, assembly, rule);
  run_phase(assembly, state, iterations, observer);
  return assembly;
}
inline Assembly run_threaded(const std::vector<std::unique_ptr<Learner>>& learners,
                             const Topology& topology, const Strategy& strategy,
                             const UpdateRule& rule, Iteration iterations,
                             Observer* observer = nullptr) {
  return run_threaded(learners, job_for(learners, topology, strategy), rule, iterations, observer);
}

}  // namespace sluice::testing
