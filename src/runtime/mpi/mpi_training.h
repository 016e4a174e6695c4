#pragma once

#include <functional>

#include "compute/learner.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "runtime/clock.h"
#include "runtime/mpi/mpi_world.h"
#include "server/update_rule.h"

namespace sluice {

// Training with every host a process of its own: this one has the worker of its rank, and its
// server. Communication runs on the thread that calls, the worker on another.
struct MpiTraining {
  MpiWorld& world;
  const Topology& topology;  // as many hosts as processes, one worker on each
  const ChunkMap& chunks;
  Protocol& host;
  Learner& learner;
  UpdateRule rule;
  const Strategy& strategy;
  Iteration iterations = 0;
  const Clock& clock;
  Observer* observer = nullptr;
  // Both as for threads, and both on rank 0 only, which hears of the steps of all workers.
  std::function<void(std::size_t rank, Iteration iteration, double loss)> on_step;
  std::function<void(Iteration iteration)> on_boundary;
  Iteration boundary_every = 0;  // 0: only at the end
  Warn warn;                     // of what takes suspiciously long; on rank 0 only
};

// Returns when every worker of the job has the final parameters and nothing is on its way any more.
// A failure of this process is thrown here, and so is the loss of a peer; the caller then aborts
// the job.
void train_on_mpi(const MpiTraining& training);

}  // namespace sluice
