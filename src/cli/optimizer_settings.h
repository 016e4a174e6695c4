#pragma once

#include "cli/settings.h"
#include "session/specs.h"

namespace sluice::cli {

// The hyper-parameters of the optimisers, for the table of settings.
std::vector<Setting> hyper_settings();
// The settings that an optimiser has defaults of its own for; none with SGD, whose defaults are
// those of the preset and the recipe.
Json to_values(Optimizer optimizer);

// Refuses what has no effect on the optimiser or the schedule.
Result<OptimizerSpec> optimizer_spec(const Settings& settings);

}  // namespace sluice::cli
