#pragma once

#include "cli/settings.h"

namespace sluice::cli {

// simulate with --sweep: all combinations of values, as a table, a CSV file and a picture.
int simulate_sweep(const Settings& settings);

// Several presets, as in --preset p3,wfbp, are one more axis of the sweep.
void sweep_over_presets(Settings::Flags& flags);

}  // namespace sluice::cli
