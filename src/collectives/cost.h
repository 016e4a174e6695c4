#pragma once

#include <cstddef>

#include "base/units.h"
#include "collectives/plan.h"
#include "model/cluster.h"

namespace sluice {

// What it takes to move and to add: alpha, beta and gamma of the literature.
struct LinkCost {
  Duration startup{0};            // alpha, of one message
  double ns_per_byte = 0;         // beta, on the wire
  double reduce_ns_per_byte = 0;  // gamma, adding two operands
};

// Time of an all-reduce as a + b*M (MG-WFBP, Table II). Equal to what the plans do where the number
// of ranks is a power of two; between powers it is the literature's smooth curve.
AllReduceCost collective_cost(Collective collective, std::size_t size, const LinkCost& link);

// What all ranks together send to sum `bytes`; exact for any number of ranks.
Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes);

}  // namespace sluice
