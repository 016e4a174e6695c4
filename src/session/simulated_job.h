#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/job.h"
#include "optimizers/update_rule.h"
#include "session/codec_choice.h"
#include "session/merging.h"
#include "session/specs.h"

namespace sluice {

// The job that trains a profile's layers on a cluster; the error names what is incompatible.
Result<Job> simulated_job(const StrategySpec& spec, const Profile& profile, const Cluster& cluster);

// A job on a cluster whose servers and updates are those of the job.
struct SimulatedCase {
  Cluster cluster;
  Job job;
  std::optional<CodecChoice> codec_choice = {};  // if there is a codec, or one to be chosen
};

// The same, with the servers where the user wants them, or where the cluster says, or where the
// preset has them, and with updates by this rule. `name` is the cluster's, for errors.
Result<SimulatedCase> simulated_case(StrategySpec spec, const ServersApart& servers,
                                     const UpdateRule& rule, const Profile& profile,
                                     const Cluster& cluster, const std::string& name);

// Groups the job's layers for partition merged, by the simulator's costs.
Merging plan_groups(Job& job, const Profile& profile, const Cluster& cluster);

}  // namespace sluice
