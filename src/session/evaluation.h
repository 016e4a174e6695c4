#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "session/log.h"
#include "session/specs.h"

namespace sluice {

// Loss and accuracy of a model on its held-out data, as a training evaluates it: with the
// parameters of spec.init, or those with which a training begins. Throws if the model cannot
// compute with its data.
Result<nlohmann::ordered_json> evaluate_model(const TaskSpec& spec, const Log& log);

}  // namespace sluice
