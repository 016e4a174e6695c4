#pragma once

#include <memory>
#include <vector>

#include "algorithms/host.h"
#include "runtime/threads/thread_training.h"

namespace sluice::testing {

struct Threaded {
  std::vector<std::unique_ptr<Host>> hosts;
  Counters counters;  // of all hosts
};

// Trains the learners on threads, wired as the command line does it.
inline Threaded run_threaded(const std::vector<std::unique_ptr<Learner>>& learners,
                             const Topology& topology, const Strategy& strategy, UpdateRule rule,
                             Iteration iterations, Observer* observer = nullptr) {
  Job job;
  job.layers = learners.front()->layers();
  job.topology = topology;
  job.strategy = strategy;
  const auto chunks = chunks_of(job);
  Threaded run;
  run.hosts = make_hosts(job, chunks);
  std::vector<Protocol*> protocols;
  for (const auto& host : run.hosts) {
    protocols.push_back(host.get());
  }
  const Clock clock;
  ThreadTraining training{.topology = topology,
                          .chunks = *chunks,
                          .hosts = protocols,
                          .learners = learners,
                          .rule = rule,
                          .iterations = iterations,
                          .clock = clock,
                          .observer = observer,
                          .on_step = {},
                          .on_boundary = {}};
  train_on_threads(training);
  for (const auto& host : run.hosts) {
    run.counters += host->counters();
  }
  return run;
}

}  // namespace sluice::testing
