#pragma once

#include "model/strategy.h"

namespace sluice::testing {

// The same, but an algorithm whose workers rarely talk talks often enough for a short run.
inline Strategy talkative(Strategy strategy) {
  strategy.staleness = 3;
  strategy.period = 4;
  strategy.gossip_probability = 0.25;
  return strategy;
}

}  // namespace sluice::testing
