#pragma once

#include <functional>
#include <string>
#include <vector>

#include "drivers/realtime/phase.h"
#include "model/layer.h"

namespace sluice {

// What was found, and where. Iterations count from 1, as steps do in the metrics.
std::string describe(const NonFinite& found, const std::vector<Layer>& layers);

// Ends the run. `advice` says what to set so that it continues.
OnNonFinite stop_on_nonfinite(std::vector<Layer> layers, std::string advice);
// Warns once per rank and lets the run continue. May be called from any thread.
OnNonFinite warn_of_nonfinite(std::vector<Layer> layers,
                              std::function<void(const std::string&)> warn);

}  // namespace sluice
