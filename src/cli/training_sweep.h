#pragma once

#include <functional>
#include <string>

#include "cli/settings.h"
#include "cli/simulate_sweep.h"
#include "report/run_folder.h"
#include "session/specs.h"
#include "session/sweep.h"

namespace sluice::cli {

// The training of a comparison that diverges is one result among others, and fails nothing.
void end_where_it_diverges(TrainSpec& spec);

// simulate --train --sweep: runs them, and shows accuracy by epoch and by virtual second as a
// table, CSV and pictures. Figures are means over the seeds, with their standard deviation.
int sweep_trainings(const Settings& settings, const Sweep& sweep, const std::string& folder_name,
                    const std::function<int(const Swept&)>& then);

}  // namespace sluice::cli
