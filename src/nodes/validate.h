#pragma once

#include "base/result.h"
#include "model/strategy.h"

namespace sluice {

// Refuses, with the reason, a combination that makes no sense.
Result<void> validate(const Strategy& strategy);

}  // namespace sluice
