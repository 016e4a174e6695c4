#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "session/specs.h"

namespace sluice::cli {

// The strategy of a run; with codec auto, also the codecs to choose from. Errors name the flag.
Result<StrategySpec> strategy_spec(const Settings& settings);

}  // namespace sluice::cli
