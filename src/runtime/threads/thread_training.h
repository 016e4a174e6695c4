#pragma once

#include <functional>
#include <span>

#include "compute/training_state.h"
#include "model/topology.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "runtime/clock.h"

namespace sluice {

// A stretch of training, with every worker and every host's communication on a thread of this
// process. Another one may go on with the same state, and with other protocols.
struct ThreadTraining {
  const Topology& topology;
  std::span<Protocol* const> hosts;
  TrainingState& state;
  Iteration first = 0;  // the job's
  Iteration last = 0;   // the first that does not run any more
  const Clock& clock;
  Observer* observer = nullptr;
  // Called after each step of each worker, from that worker's thread. Calls of this and of
  // on_boundary come one at a time.
  std::function<void(std::size_t rank, Iteration iteration, double loss)> on_step;
  // Called when worker 0 has all parameters of an iteration that is about to run, from its own
  // thread: of every so many iterations, but not of the first of all.
  std::function<void(Iteration iteration)> on_boundary;
  Iteration boundary_every = 0;  // 0: never
};

// Returns when every worker has the parameters of the last iteration. The first failure of any
// thread ends all of them and is thrown here.
void train_on_threads(const ThreadTraining& training);

}  // namespace sluice
