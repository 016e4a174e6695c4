#pragma once

#include <memory>
#include <vector>

#include "algorithms/assembly.h"
#include "runtime/threads/thread_training.h"

namespace sluice::testing {

// Trains the learners on threads, wired as the command line does it.
inline Assembly run_threaded(const std::vector<std::unique_ptr<Learner>>& learners,
                             const Topology& topology, const Strategy& strategy, UpdateRule rule,
                             Iteration iterations, Observer* observer = nullptr) {
  Job job;
  job.layers = learners.front()->layers();
  job.topology = topology;
  job.strategy = strategy;
  Assembly assembly = assemble(std::move(job));
  const Clock clock;
  ThreadTraining training{.topology = topology,
                          .chunks = *assembly.chunks,
                          .hosts = assembly.protocols,
                          .learners = learners,
                          .rule = rule,
                          .strategy = strategy,
                          .iterations = iterations,
                          .clock = clock,
                          .observer = observer,
                          .on_step = {},
                          .on_boundary = {}};
  train_on_threads(training);
  return assembly;
}

}  // namespace sluice::testing
