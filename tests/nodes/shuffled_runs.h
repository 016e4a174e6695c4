#pragma once

#include <rapidcheck.h>

#include <cstdint>

#include "support/shuffled_run.h"

// What the tests of runs in a shuffled world have in common.
namespace sluice::testing {

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

}  // namespace sluice::testing
