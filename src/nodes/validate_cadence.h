#pragma once

#include "base/result.h"
#include "model/strategy.h"

namespace sluice {

// The part of validate() that is about how often workers exchange.
Result<void> validate_cadence(const Strategy& strategy);

}  // namespace sluice
