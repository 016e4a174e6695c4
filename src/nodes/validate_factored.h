#pragma once

#include "base/result.h"
#include "model/strategy.h"

namespace sluice {

// Whether the strategy can have codec powersgd, if it has it, and its rank.
Result<void> validate_factored(const Strategy& strategy);

}  // namespace sluice
