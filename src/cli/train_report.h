#pragma once

#include "cli/settings.h"
#include "session/process_group.h"
#include "session/specs.h"

namespace sluice::cli {

// If a launcher started the processes, the last ones have the servers, if these have hosts of their
// own, and the others one worker each, or several.
Result<void> dictate_workers(const ProcessGroup& group, Settings& settings);

// One training run with this group: shows its progress, prints its summary, and returns the exit
// code.
int train_and_report(ProcessGroup& group, const Result<TrainSpec>& spec, const Settings& settings);

}  // namespace sluice::cli
