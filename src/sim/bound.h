#pragma once

#include "model/cluster.h"
#include "model/profile.h"
#include "model/strategy.h"

namespace sluice {

// A time below which no synchronous iteration can fall on this cluster with this kind of exchange,
// whatever is sliced, merged or sent first. docs/simulator.md derives it.
Duration lower_bound(const Profile& profile, const Cluster& cluster, Exchange exchange);

}  // namespace sluice
