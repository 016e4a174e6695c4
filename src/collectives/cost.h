#pragma once

#include <cstddef>

#include "base/units.h"
#include "collectives/plan.h"
#include "formats/cluster.h"
#include "model/job.h"

namespace sluice {

// Time of an all-reduce as a + b*M (MG-WFBP, Table II). Exact for the plans if the number of ranks
// is a power of two; between powers it is the smooth curve of the literature.
AllReduceCost collective_cost(Collective collective, std::size_t size, const LinkCost& link);

// What all ranks together send to sum `bytes`; exact for any number of ranks.
Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes);

// The cheapest collective for this many bytes; the first one if several are equal.
Collective cheapest_collective(std::size_t size, Bytes bytes, const LinkCost& link);

}  // namespace sluice
