#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/job.h"
#include "session/record.h"

namespace sluice {

// Simulated before the iterations that count, so that those are in the steady state.
inline constexpr Iteration kSimulatedWarmUp = 4;

// A simulation whose first iterations do not count: of a job, as simulated_job() makes it.
struct SteadyRun {
  Job job;
  const Profile& profile;
  const Cluster& cluster;
  std::string preset;  // the name in the summary
  Iteration iterations = 1;
  std::vector<double> slowdowns = {};  // see Simulation
};

struct SimulationReport {
  nlohmann::ordered_json summary;      // all numbers are of the iterations that count
  Iteration first = kSimulatedWarmUp;  // of these iterations
  std::vector<Time> starts;            // of these iterations, and the end of the last
};

SimulationReport simulate_steadily(const SteadyRun& run, Record& record);

}  // namespace sluice
