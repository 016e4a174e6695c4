#pragma once

#include <optional>

#include "session/admission.h"

// How the workers that are left of a run whose sums need all of them make new sums without the
// others.
namespace sluice {

// Whether somebody is lost with whom the job's sums still count.
bool misses_somebody(const ProcessGroup& group, const Job& job);

// After a phase of a run whose sums can be given up. If it has lost somebody since the job was
// made, those that are left agree on the same sums, and the job for the next phase is returned: it
// goes on without the lost ones. Collective, with the same result in every process.
std::optional<Job> regroup(const RunState& run, const Log& log);

}  // namespace sluice
