#pragma once

#include <cstddef>

#include "base/units.h"
#include "collectives/plan.h"
#include "formats/cluster.h"
#include "model/job.h"

namespace sluice {

// Time of an all-reduce as a + b*M (MG-WFBP, Table II). Equal to what the plans do where the number
// of ranks is a power of two; between powers it is the literature's smooth curve.
AllReduceCost collective_cost(Collective collective, std::size_t size, const LinkCost& link);

// What all ranks together send to sum `bytes`; exact for any number of ranks.
Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes);

// The one with the least cost for so many bytes; the first of equals.
Collective cheapest_collective(std::size_t size, Bytes bytes, const LinkCost& link);

}  // namespace sluice
