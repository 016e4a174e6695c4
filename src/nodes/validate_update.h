#pragma once

#include "base/result.h"
#include "model/strategy.h"
#include "optimizers/update_rule.h"

namespace sluice {

// Refuses, with the reason, an update rule that the strategy cannot carry out.
Result<void> validate(const UpdateRule& rule, const Strategy& strategy);

// What an all-reduce sums before it updates.
SumsFirst sums_first(const UpdateRule& rule);

}  // namespace sluice
