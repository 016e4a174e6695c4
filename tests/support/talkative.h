#pragma once

#include <algorithm>

#include "model/strategy.h"

namespace sluice::testing {

// The same, but an algorithm whose workers rarely talk talks often enough for a short run, and a
// codec leaves something out.
inline Strategy talkative(Strategy strategy) {
  strategy.staleness = 3;
  strategy.period = 4;
  strategy.gossip_probability = 0.25;
  Cadence& cadence = strategy.cadence;
  cadence.every = std::min<Iteration>(cadence.every, 3);
  cadence.synchronous = std::min<Iteration>(cadence.synchronous, 2);
  cadence.fragments = std::min<std::int64_t>(cadence.fragments, 2);
  cadence.delay = std::min<Iteration>(cadence.delay, 1);
  if (strategy.gathered()) {
    strategy.top_k.block = 16;  // of short layers
    strategy.top_k.kept = 3;
  }
  if (strategy.factored()) {
    strategy.power_rank = 1;
  }
  return strategy;
}

}  // namespace sluice::testing
