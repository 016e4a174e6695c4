#pragma once

#include "base/units.h"
#include "formats/faults.h"
#include "session/fault_costs.h"

namespace sluice {

struct FaultyTime {
  Duration end{0};  // zero if no worker reaches it
  Iteration iterations_lost = 0;
};

// The time of a run with faults with which it goes on, phase by phase as a session runs it: where
// sums need all workers, those that are left of a loss end the phase together, and begin the next
// one with sums of their own.
FaultyTime simulate_in_phases(const FaultyRun& run, const Faults& faults);

}  // namespace sluice
