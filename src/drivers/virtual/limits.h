#pragma once

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/profile.h"

namespace sluice {

// Refuses a net and a cluster if the times of one iteration overflow their type. Many iterations
// may still overflow: then the simulation itself reports it.
Result<void> check_times(const Profile& profile, const Cluster& cluster);

}  // namespace sluice
