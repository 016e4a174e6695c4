#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "drivers/virtual/computing.h"
#include "formats/cluster.h"
#include "formats/faults.h"
#include "formats/profile.h"
#include "learners/learner.h"
#include "learners/step_report.h"
#include "optimizers/update_rule.h"
#include "partition/chunk_map.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"
#include "state/training_state.h"

namespace sluice {

// Real gradients in virtual time: the clock is the simulator's, the numbers are the learners'.
struct VirtualNumbers {
  std::span<const std::unique_ptr<Learner>> learners;  // by rank
  const ChunkMap* chunks = nullptr;
  UpdateRule rule;
  Strategy strategy;

  TrainingState* state = nullptr;  // of the learners; null: the run makes its own
  Computing* computing = nullptr;  // where steps are computed; null: at once, one after the other
  // Called after each step of each worker, in the order of virtual time.
  std::function<void(const StepReport& step)> on_step{};
  // Called when worker 0 has all parameters of an iteration that is about to run: every
  // `boundary_every` iterations, but not before the very first.
  std::function<void(Iteration iteration, Time now)> on_boundary{};
  Iteration boundary_every = 0;  // 0: never
  // Called with each loss and each gradient that is not finite, before anybody else sees it. An
  // exception ends the run. Unset: nothing is checked.
  OnNonFinite on_nonfinite{};
  // The signal after which the run should stop as soon as it can; 0 while there is none.
  std::function<int()> interrupted{};
};

struct Simulation {
  const Profile& profile;
  const Cluster& cluster;
  std::span<Protocol* const> hosts;
  Iteration iterations = 10;
  Order channel_order = Order::kFifo;  // of the cluster's all-reduce channel, if it has one
  Observer* observer = nullptr;
  const VirtualNumbers* numbers = nullptr;
  // By worker: factor on its compute times, besides the cluster's; empty: all alike.
  std::vector<double> slowdowns = {};
  std::uint64_t seed = 1;  // of the cluster's jitter
  // Iterations before this one are not counted: messages and arithmetic belong to the iteration
  // whose gradients they bring about.
  Iteration warm_up = 0;
  const Faults* faults = nullptr;       // what goes wrong meanwhile; null: nothing
  Iteration first = 0;                  // the workers begin there, and end before `iterations`
  std::span<const HostId> absent = {};  // are lost from the beginning
  // Once a host is heard to be lost, the run ends at the first iteration that none of the others
  // has begun.
  bool ends_after_loss = false;

  // The first iteration whose forward pass waits for something that counts.
  Iteration first_counted() const { return warm_up == 0 ? 0 : warm_up + 1; }
};

struct SimulationResult {
  std::vector<Time> starts;  // by iteration: of its forward pass on the last worker; one more than
                             // iterations, the last being the start of what would come next
  Time end{0};
  // Of the counted iterations:
  std::int64_t messages = 0;
  Bytes bytes = 0;           // on the wire, headers included
  Duration egress_busy{0};   // mean over the hosts
  Duration ingress_busy{0};  // mean over the hosts
  Duration channel_busy{0};  // of the cluster's all-reduce channel, if it has one
  std::int64_t channel_overtakings = 0;
  // Of the whole run:
  std::uint64_t events = 0;
  std::optional<int> stopped;  // the signal that ended the run early
  // That workers killed in this run have not made; if it ended early, those of `lost`.
  std::int64_t iterations_lost = 0;
  std::vector<HostId> lost = {};           // in this run, as the others have heard
  std::optional<Iteration> ended_at = {};  // therefore

  // Start of forward to start of forward, over the second half of the run.
  Duration iteration_time() const {
    const std::size_t last = starts.size() - 1;
    const std::size_t first = last / 2;
    return (starts[last] - starts[first]) / static_cast<std::int64_t>(last - first);
  }
};

// Runs the protocol of every host in virtual time. Equal input gives equal results. Throws LostPeer
// if a host is killed without which the job cannot go on.
SimulationResult simulate(const Simulation& simulation);

}  // namespace sluice
