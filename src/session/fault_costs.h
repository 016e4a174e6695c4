#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "formats/cluster.h"
#include "formats/faults.h"
#include "formats/profile.h"
#include "model/job.h"

namespace sluice {

// A simulation in which something goes wrong: of a job, as simulated_job() makes it.
struct FaultyRun {
  Job job;
  const Profile& profile;
  const Cluster& cluster;
  Iteration iterations = 1;
  std::vector<double> slowdowns = {};  // see Simulation
  Faults faults = {};
  std::uint64_t seed = 1;          // of the kills that the faults leave to chance
  Iteration checkpoint_every = 1;  // iterations, for a job that ends when it loses a host
};

// One fault of any kind, at any time before the end.
Fault draw_fault(std::uint64_t seed, std::size_t hosts, Duration end);

// How long the run takes, compared with one in which nothing goes wrong, and what work is lost. A
// job that cannot go on without a host is started again from its newest checkpoint. If there are no
// faults in the file, one is drawn from the seed.
Result<nlohmann::ordered_json> costs_of_faults(FaultyRun run);

}  // namespace sluice
