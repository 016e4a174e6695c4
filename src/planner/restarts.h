#pragma once

#include <cstdint>
#include <span>

#include "base/id.h"

namespace sluice {

// A training that writes checkpoints and, after a kill, is started again from the newest. Times are
// in seconds.
struct RestartedTraining {
  Iteration iterations = 1;
  double iteration_s = 1;
  Iteration checkpoint_every = 1;  // iterations
  double checkpoint_s = 0;         // by which writing one holds up training
  double restart_s = 0;            // from a kill until it trains again
};

struct RestartCosts {
  double total_s = 0;            // until it is done
  std::int64_t restarts = 0;     // kills in the meantime
  Iteration repeated = 0;        // iterations made again: the work lost
  std::int64_t checkpoints = 0;  // that were written
};

// Kills come in the order of time; one that comes before the training is started again changes
// nothing but that it starts later.
RestartCosts with_kills(const RestartedTraining& training, std::span<const double> kills_s);

}  // namespace sluice
