#include "model/algorithm.h"

#include <limits>

#include "model/strategy.h"

namespace sluice::algorithm_traits {

std::size_t one_slot(const Strategy& /*strategy*/) { return 1; }

std::size_t slots_of_staleness(const Strategy& strategy) { return strategy.staleness > 0 ? 2 : 1; }

std::size_t slots_of_pipeline(const Strategy& strategy) {
  return static_cast<std::size_t>(strategy.pipeline_depth);
}

Iteration no_lead(const Strategy& /*strategy*/) { return 0; }

Iteration lead_of_staleness(const Strategy& strategy) { return strategy.staleness; }

Iteration lead_of_pipeline(const Strategy& strategy) { return strategy.pipeline_depth - 1; }

// A worker that waits for the sum of an exchange needs the others to have begun it. One that waits
// for its partner may be any number of rounds ahead of workers that it has not met.
Iteration lead_of_cadence(const Strategy& strategy) {
  if (strategy.exchange == Exchange::kGossip) {
    return std::numeric_limits<Iteration>::max();
  }
  return strategy.cadence.every + strategy.cadence.delay - 1;
}

Iteration any_lead(const Strategy& /*strategy*/) { return std::numeric_limits<Iteration>::max(); }

}  // namespace sluice::algorithm_traits
