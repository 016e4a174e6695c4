#pragma once

#include <functional>
#include <optional>
#include <span>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/start_thread.h"
#include "learners/step_report.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "partition/chunk_map.h"
#include "protocol/event.h"
#include "protocol/message_rules.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "state/training_state.h"

namespace sluice {

// A phase of training, in which chunks and protocols stay the same. It ends when all workers have
// ended and nothing is in flight. The next phase continues with the same state, and with the same
// protocols or, if these have nothing to remember, with others.
struct Phase {
  const Topology& topology;
  const ChunkMap& chunks;
  const Strategy& strategy;
  const MessageRules& rules;         // of messages between hosts
  std::span<Protocol* const> hosts;  // those of other processes may be null
  TrainingState& state;              // of the nodes that this process runs
  Iteration first = 0;               // that any worker begins with
  Iteration last = 0;                // the first that does not run
  const Clock& clock;
  Observer* observer = nullptr;
  // Called after each step of each worker, with some delay, in the process of worker 0. Calls of
  // this and of on_boundary come one at a time, from the workers' threads.
  std::function<void(const StepReport& step)> on_step;
  // Called from worker 0's thread when it has all parameters of an iteration that is about to run:
  // every `boundary_every` iterations, but not before the very first.
  std::function<void(Iteration iteration)> on_boundary;
  Iteration boundary_every = 0;  // 0: never
  // Called from the worker's thread with each loss and each gradient that is not finite, before
  // anybody else sees it. An exception ends the run. Unset: nothing is checked.
  OnNonFinite on_nonfinite{};
  // The signal after which the run should stop as soon as it can; 0 while there is none. Polled,
  // also from the workers' threads. If one process returns a signal, the run stops in all of them.
  std::function<int()> interrupted{};
  // Whether the others go on if this host is lost; unset: never.
  std::function<bool(HostId host)> outlives{};
  // Hosts that were lost in the phase before and are there again, each with its start.
  std::span<const PeerJoined> joined{};
  // A program takes the steps, as fast as it likes: one that it does not take is no stall.
  bool is_open = false;
  // Whether a process may keep idle cores busy to hear of messages sooner.
  bool may_spin = true;
  StartThread start = start_thread;
  // By worker, where they do not all begin with the first iteration.
  std::span<const Iteration> starts{};

  Iteration start_of(NodeId worker) const {
    return starts.empty() ? first : starts[worker.index()];
  }
};

// A phase that has begun, carried out by calls from one thread, which may do other things in
// between.
class RunningPhase {
 public:
  virtual ~RunningPhase() = default;

  // Does what there is to do; true if anything moved.
  virtual bool turn() = 0;
  // Sleeps until there may be something to do, no longer than `limit`.
  virtual void rest(Duration limit) = 0;
  // Ends the sleep, or the next one. From any thread.
  virtual void wake() = 0;
  // Nothing is left to do, in all processes.
  virtual bool is_over() const = 0;
};

}  // namespace sluice
