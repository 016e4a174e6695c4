#pragma once

#include <functional>
#include <memory>
#include <span>

#include "compute/learner.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "runtime/clock.h"
#include "server/update_rule.h"

namespace sluice {

// Training with every worker and every host's communication on a thread of this process.
struct ThreadTraining {
  const Topology& topology;
  const ChunkMap& chunks;
  std::span<Protocol* const> hosts;
  std::span<const std::unique_ptr<Learner>> learners;  // by rank
  UpdateRule rule;
  const Strategy& strategy;
  Iteration iterations = 0;
  const Clock& clock;
  Observer* observer = nullptr;
  // Called after each step of each worker, from that worker's thread. Calls of this and of
  // on_boundary come one at a time.
  std::function<void(std::size_t rank, Iteration iteration, double loss)> on_step;
  // Called when worker 0 has all parameters of this iteration, from its own thread; at the end,
  // when every worker has them, from the caller's.
  std::function<void(Iteration iteration)> on_boundary;
  Iteration boundary_every = 0;  // 0: only at the end
};

// Returns when every worker has the final parameters. The first failure of any thread ends all of
// them and is thrown here.
void train_on_threads(const ThreadTraining& training);

}  // namespace sluice
