#include "planner/restarts.h"

#include <algorithm>
#include <cmath>

namespace sluice {

// From a checkpoint on the training repeats one block: so many iterations, then the next
// checkpoint. After the last iteration none is needed.
RestartCosts with_kills(const RestartedTraining& training, std::span<const double> kills_s) {
  const auto every = static_cast<double>(training.checkpoint_every);
  const double block_s = every * training.iteration_s + training.checkpoint_s;
  const auto time_for = [&](Iteration iterations) {
    const Iteration checkpoints = (iterations - 1) / training.checkpoint_every;
    return static_cast<double>(iterations) * training.iteration_s +
           static_cast<double>(checkpoints) * training.checkpoint_s;
  };
  RestartCosts costs;
  double begin_s = 0;   // when the training was last started
  Iteration saved = 0;  // iterations in the newest checkpoint
  for (const double kill_s : kills_s) {
    const Iteration left = training.iterations - saved;
    if (begin_s + time_for(left) <= kill_s) {
      break;
    }
    ++costs.restarts;
    const double trained_s = kill_s - begin_s;
    begin_s = std::max(begin_s, kill_s + training.restart_s);
    if (trained_s <= 0) {
      continue;
    }
    const auto blocks = std::min(static_cast<Iteration>(std::floor(trained_s / block_s)),
                                 (left - 1) / training.checkpoint_every);
    const double in_block_s = trained_s - static_cast<double>(blocks) * block_s;
    const auto in_block = static_cast<Iteration>(std::floor(in_block_s / training.iteration_s));
    saved += blocks * training.checkpoint_every;
    costs.checkpoints += blocks;
    costs.repeated += std::min({in_block, training.checkpoint_every, training.iterations - saved});
  }
  const Iteration left = training.iterations - saved;
  costs.checkpoints += (left - 1) / training.checkpoint_every;
  costs.total_s = begin_s + time_for(left);
  return costs;
}

}  // namespace sluice
