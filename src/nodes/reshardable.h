#pragma once

#include "base/result.h"
#include "model/strategy.h"

namespace sluice {

// Whether another number of workers, servers or hosts can go on with the numbers of such a run. The
// error says which of them belong to the workers that it had.
Result<void> check_reshardable(const Strategy& strategy);

}  // namespace sluice
