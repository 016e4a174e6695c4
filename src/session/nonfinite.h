#pragma once

#include <functional>
#include <string>
#include <vector>

#include "drivers/realtime/phase.h"
#include "model/layer.h"

namespace sluice {

// What was found, where, and what to try. Iterations count from 1, as steps do in the metrics.
std::string describe(const NonFinite& found, const std::vector<Layer>& layers);

// Ends the run.
OnNonFinite stop_on_nonfinite(std::vector<Layer> layers);
// Warns once per rank and lets the run continue. May be called from any thread.
OnNonFinite warn_of_nonfinite(std::vector<Layer> layers,
                              std::function<void(const std::string&)> warn);

}  // namespace sluice
