#pragma once

#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/strategy.h"
#include "partition/chunk_map.h"

namespace sluice {

// A lower bound on the time of an iteration on this cluster with this algorithm, this kind of
// exchange and these servers, however the parameters are sliced, merged or ordered.
// docs/simulator.md derives it. Algorithms whose workers do not wait for each other are bounded by
// their compute alone.
Duration lower_bound(const Profile& profile, const Cluster& cluster, const Strategy& strategy,
                     const ChunkMap& chunks);

}  // namespace sluice
