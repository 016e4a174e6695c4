#include "cli/simulated_setup.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/optimizer_settings.h"
#include "cli/specs.h"
#include "cli/strategy_settings.h"
#include "session/batch_shares.h"
#include "session/optimizer.h"
#include "session/simulated_job.h"
#include "session/steady_run.h"
#include "session/workload.h"

namespace sluice::cli {
namespace {

Iteration counted_iterations(const Settings& settings) {
  constexpr Iteration kDefault = 20;
  const Iteration asked = settings.integer("iterations");
  return asked > 0 ? asked : kDefault;
}

// Whether the servers are where nobody but the preset wants them.
std::string note_on_servers(const Settings& settings, const Cluster& cluster) {
  const ServersApart chosen = servers_apart(settings);
  return cluster.places_servers || cluster.allreduce ? ""
                                                     : note_on(chosen, settings.text("preset"));
}

}  // namespace

Result<SimulatedSetup> simulated_setup(const Settings& settings, const Json& cluster_values) {
  auto profile = scaled_profile(profile_spec(settings.path("profile"), settings));
  if (!profile) {
    return profile.error();
  }
  auto file = read_cluster(settings.path("cluster"), cluster_values);
  if (!file) {
    return file.error();
  }
  const auto optimizer = optimizer_spec(settings);
  if (!optimizer) {
    return optimizer.error();
  }
  const auto strategy = strategy_spec(settings);
  if (!strategy) {
    return strategy.error();
  }
  auto made = simulated_case(*strategy, servers_apart(settings), rule_of(*optimizer, {}), *profile,
                             *file, settings.text("cluster"));
  if (!made) {
    return made.error();
  }
  const Cluster& cluster = made->cluster;
  const auto shares = batch_shares(settings, &cluster);
  if (!shares) {
    return shares.error();
  }
  if (const auto valid = check_shares(*shares, made->job.strategy, cluster.topology.workers());
      !valid) {
    return valid.error();
  }
  std::vector<std::string> notes;
  if (made->codec_choice) {
    notes.push_back(text_of(*made->codec_choice));
  }
  if (std::string note = note_on_servers(settings, *file); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (cluster.allreduce && strategy->strategy.uses_servers()) {
    notes.push_back(fmt::format("the cluster's [allreduce] table stands in for the exchange {}",
                                name_of(kExchangeNames, strategy->strategy.exchange)));
  }
  return SimulatedSetup{.profile = *std::move(profile),
                        .cluster = cluster,
                        .job = made->job,
                        .preset = settings.text("preset"),
                        .iterations = counted_iterations(settings),
                        .slowdowns = compute_factors(shares->parts),
                        .notes = std::move(notes),
                        .codec_choice = made->codec_choice};
}

nlohmann::ordered_json steady_summary(const SimulatedSetup& setup) {
  Record record;
  return simulate_steadily({.job = setup.job,
                            .profile = setup.profile,
                            .cluster = setup.cluster,
                            .preset = setup.preset,
                            .iterations = setup.iterations,
                            .slowdowns = setup.slowdowns},
                           record)
      .summary;
}

}  // namespace sluice::cli
