#pragma once

#include "optimizers/update_rule.h"
#include "session/journal.h"
#include "session/specs.h"

namespace sluice {

// Both functions convert epochs to iterations of this run.
// The base learning rate of the schedule.
double learning_rate_of(const OptimizerSpec& spec, const Extent& extent);

UpdateRule rule_of(const OptimizerSpec& spec, const Extent& extent);

}  // namespace sluice
