#pragma once

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/job.h"
#include "session/merging.h"
#include "session/specs.h"

namespace sluice {

// The job that trains a profile's layers on a cluster; the error names what is incompatible.
Result<Job> simulated_job(const StrategySpec& spec, const Profile& profile, const Cluster& cluster);

// Groups the job's layers for partition merged, by the simulator's costs.
Merging plan_groups(Job& job, const Profile& profile, const Cluster& cluster);

}  // namespace sluice
