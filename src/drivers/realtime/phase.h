#pragma once

#include <functional>
#include <optional>
#include <span>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/start_thread.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/message_rules.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "state/training_state.h"

namespace sluice {

// A worker has done an iteration.
struct StepReport {
  std::size_t rank = 0;
  Iteration iteration = 0;
  std::optional<double> loss;  // none: nothing is learnt
  Time at{0};                  // of the process of worker 0
};

// A loss or a gradient that is infinite or no number.
struct NonFinite {
  std::size_t rank = 0;
  Iteration iteration = 0;
  std::optional<LayerId> layer;  // whose gradient it is; none: it is the loss
};

// A phase of training: in it chunks and protocols stay as they are. Another one may go on with
// the same state, and with other protocols.
struct Phase {
  const Topology& topology;
  const ChunkMap& chunks;
  const Strategy& strategy;
  const MessageRules& rules;         // of messages between hosts
  std::span<Protocol* const> hosts;  // those of other processes may be null
  TrainingState& state;              // of the nodes that this process runs
  Iteration first = 0;               // the job's
  Iteration last = 0;                // the first that does not run any more
  const Clock& clock;
  Observer* observer = nullptr;
  // Called after each step of each worker, some time later, in the process of worker 0. Calls of
  // this and of on_boundary come one at a time, from threads of workers.
  std::function<void(const StepReport& step)> on_step;
  // Called when worker 0 has all parameters of an iteration that is about to run, from its own
  // thread: of every so many iterations, but not of the first of all.
  std::function<void(Iteration iteration)> on_boundary;
  Iteration boundary_every = 0;  // 0: never
  // Called with each loss and each gradient that is not finite, before anybody else sees it, from
  // the worker's thread. What it throws ends the run. Unset: nobody looks.
  std::function<void(const NonFinite& found)> on_nonfinite{};
  // The signal after which the run is to stop as soon as it can, 0 while there is none. Asked again
  // and again, from threads of workers too. In all processes the run stops if one of them says so.
  std::function<int()> interrupted{};
  StartThread start = start_thread;
};

}  // namespace sluice
