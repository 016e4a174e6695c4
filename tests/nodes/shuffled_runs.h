#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>

#include "support/shuffled_run.h"

// What the tests of runs in a shuffled world have in common.
namespace sluice::testing {

inline std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }

inline Cadence any_cadence() {
  Cadence cadence;
  cadence.every = *rc::gen::inRange<Iteration>(1, 7);
  cadence.synchronous = *rc::gen::element<Iteration>(0, 0, 3);
  cadence.outer = *rc::gen::element(Outer::kMean, Outer::kNesterov);
  cadence.rate = *rc::gen::element(0.7, 1.0);
  cadence.fragments = *rc::gen::inRange<std::int64_t>(1, std::min<Iteration>(cadence.every, 3) + 1);
  cadence.delay = *rc::gen::inRange<Iteration>(0, cadence.every);
  cadence.mix = *rc::gen::element(0.0, 0.0, 0.5);
  return cadence;
}

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
