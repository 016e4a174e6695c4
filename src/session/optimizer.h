#pragma once

#include "optimizers/update_rule.h"
#include "session/extent.h"
#include "session/specs.h"

namespace sluice {

// The base learning rate of the schedule.
double learning_rate_of(const OptimizerSpec& spec, const Extent& extent);

// Converts the epochs of the spec to iterations of this run.
UpdateRule rule_of(const OptimizerSpec& spec, const Extent& extent);

}  // namespace sluice
