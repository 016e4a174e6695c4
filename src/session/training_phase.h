#pragma once

#include <span>
#include <vector>

#include "drivers/realtime/phase.h"
#include "nodes/assembly.h"
#include "state/training_state.h"

namespace sluice {

// A phase that only trains, all workers from `starts` on; the caller adds whom it reports to. It
// refers to its arguments.
Phase phase_of(const Assembly& assembly, TrainingState& state, std::span<const Iteration> starts,
               Iteration last, const Clock& clock, Observer* observer);

// Where the workers of the job begin.
std::vector<Iteration> starts_of(const Job& job);

}  // namespace sluice
