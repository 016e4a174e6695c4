#pragma once

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/profile.h"

namespace sluice {

// Refuses a net and a cluster with which the times of one iteration do not fit their type. What
// passes may still be too much for many iterations: then the simulation itself says so.
Result<void> check_times(const Profile& profile, const Cluster& cluster);

}  // namespace sluice
