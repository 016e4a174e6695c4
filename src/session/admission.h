#pragma once

#include <csignal>
#include <vector>

#include "nodes/assembly.h"
#include "protocol/event.h"
#include "session/log.h"
#include "session/process_group.h"
#include "session/resumption.h"
#include "state/training_state.h"

// How a process that takes the place of a lost one gets into a run that has gone on.
namespace sluice {

// By this a run asks itself to end the phase, because somebody waits to be let in, or is lost
// without whom it makes other sums.
inline constexpr int kRegroupSignal = SIGCONT;

// Whether a worker that was lost may join such a run again.
bool takes_joiners(const Strategy& strategy, const Topology& topology);

// Between two phases: what the processes of a run have.
struct RunState {
  ProcessGroup& group;
  const Assembly& assembly;
  TrainingState& state;
  std::vector<Iteration>& at;  // by worker: the iteration that it begins with next
  Iteration evaluated = 0;     // when they last met for an evaluation
  Time now{0};
  History history = {};
};

// Lets in who waits. Each host that joins takes the state of the next one that is left, and begins
// where the slowest worker there is, which shares its weight with it. Collective.
std::vector<PeerJoined> let_in(const RunState& run, const Log& log);

// In the process that joins: what it begins with, once it is let in.
Resumption await_admission(ProcessGroup& group);

}  // namespace sluice
