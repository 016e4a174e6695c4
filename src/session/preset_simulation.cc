#include "session/preset_simulation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "drivers/processes/launch.h"
#include "nodes/presets.h"
#include "session/optimizer.h"
#include "session/record.h"
#include "session/simulated_job.h"
#include "session/steady_run.h"

namespace sluice {

Result<nlohmann::ordered_json> simulate_preset(const std::string& preset, const Profile& profile,
                                               const Cluster& cluster, Iteration iterations,
                                               const std::string& trace) {
  const Preset* found = find_preset(preset);
  if (found == nullptr) {
    return Error(fmt::format("there is no preset {}; sluice presets lists them", preset));
  }
  if (iterations < 1) {
    return Error("iterations: expected at least 1");
  }
  const StrategySpec spec{.preset = preset, .strategy = found->strategy, .chosen = {}};
  auto made = simulated_case(spec, {.servers = found->servers, .by_preset = true}, rule_of({}, {}),
                             profile, cluster, "cluster");
  if (!made) {
    return made.error();
  }
  RecordSpec recording;
  recording.trace = trace;
  Record record = Record::without_folder(recording);
  const SimulationReport report = simulate_steadily({.job = made->job,
                                                     .profile = profile,
                                                     .cluster = made->cluster,
                                                     .preset = preset,
                                                     .iterations = iterations},
                                                    record);
  if (const auto closed = record.close(report.summary, {host_name()}); !closed) {
    return closed.error();
  }
  return report.summary;
}

}  // namespace sluice
