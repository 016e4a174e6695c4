#include "session/preset_simulation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "drivers/mpi/launch.h"
#include "drivers/virtual/limits.h"
#include "nodes/presets.h"
#include "nodes/validate_update.h"
#include "session/optimizer.h"
#include "session/record.h"
#include "session/simulated_job.h"
#include "session/steady_run.h"

namespace sluice {

Result<nlohmann::ordered_json> simulate_preset(const std::string& preset, const Profile& profile,
                                               Cluster cluster, Iteration iterations,
                                               const std::string& trace) {
  const Preset* found = find_preset(preset);
  if (found == nullptr) {
    return Error(fmt::format("there is no preset {}; sluice presets lists them", preset));
  }
  if (iterations < 1) {
    return Error("iterations: expected at least 1");
  }
  StrategySpec spec{.preset = preset, .strategy = found->strategy, .chosen = {}};
  if (found->servers > 0 && !cluster.places_servers && !cluster.allreduce) {
    const Topology given = cluster.topology;
    cluster.topology = Topology(given.worker_hosts(), given.workers_per_host(), found->servers, 1);
  }
  const UpdateRule rule = rule_of({}, {});
  cluster.update_ns_per_byte *= update_traffic(rule);
  spec.strategy.sums_first = sums_first(rule);
  if (const auto fits = check_times(profile, cluster); !fits) {
    return fits.error();
  }
  auto job = simulated_job(spec, profile, cluster);
  if (!job) {
    return job.error();
  }
  RecordSpec recording;
  recording.trace = trace;
  Record record = Record::without_folder(recording);
  const SimulationReport report = simulate_steadily({.job = *std::move(job),
                                                     .profile = profile,
                                                     .cluster = cluster,
                                                     .preset = preset,
                                                     .iterations = iterations},
                                                    record);
  if (const auto closed = record.close(report.summary, {host_name()}); !closed) {
    return closed.error();
  }
  return report.summary;
}

}  // namespace sluice
