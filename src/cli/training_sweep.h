#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "cli/simulate_sweep.h"
#include "report/run_folder.h"
#include "session/sweep.h"
#include "session/training_sweep.h"

namespace sluice::cli {

// The trainings of a sweep: simulate --train for each combination of values. Each keeps its record
// in a folder of its own in `folder`. An error names the combination.
Result<TrainingSweep> training_sweep(const Settings& settings, const Sweep& sweep,
                                     const RunFolder& folder);

// The training of a comparison that diverges is one result among others, and fails nothing.
void end_where_it_diverges(TrainSpec& spec);

// simulate --train --sweep: runs them, and shows accuracy by epoch and by virtual second as a
// table, CSV and pictures. Figures are means over the seeds, with their standard deviation.
int sweep_trainings(const Settings& settings, const Sweep& sweep, const std::string& folder_name,
                    const std::function<int(const Swept&)>& then);

}  // namespace sluice::cli
