#pragma once

#include "base/units.h"
#include "model/strategy.h"

namespace sluice {

// What a gradient of so many parameters, on its way into this iteration, takes as the strategy's
// codec writes it.
Bytes coded_size(const Strategy& strategy, std::int64_t params, Iteration iteration);

// What the sum of sparse vectors takes that take `bytes` together, if no two share an entry, and
// what a gathered codec makes of them, which is no sum.
Bytes merged_size(const Strategy& strategy, Bytes bytes, std::int64_t params);

}  // namespace sluice
