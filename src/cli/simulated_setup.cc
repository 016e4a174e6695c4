#include "cli/simulated_setup.h"

#include <fmt/format.h>

#include <utility>

#include "cli/optimizer_settings.h"
#include "cli/specs.h"
#include "cli/strategy_settings.h"
#include "drivers/virtual/limits.h"
#include "nodes/validate_update.h"
#include "session/batch_shares.h"
#include "session/optimizer.h"
#include "session/simulated_job.h"
#include "session/workload.h"

namespace sluice::cli {
namespace {

Iteration counted_iterations(const Settings& settings) {
  constexpr Iteration kDefault = 20;
  const Iteration asked = settings.integer("iterations");
  return asked > 0 ? asked : kDefault;
}

// The servers are where the user wants them, or where the cluster file says, or where the preset
// has them.
Result<Cluster> place_servers(const Settings& settings, Cluster cluster) {
  const Topology given = cluster.topology;
  const ServersApart chosen = servers_apart(settings);
  if (chosen.by_preset && (cluster.places_servers || cluster.allreduce)) {
    return cluster;
  }
  const Strategy strategy = settings.strategy();
  if (chosen.servers > 0 && (cluster.allreduce || !strategy.uses_servers())) {
    return Error(cluster.allreduce
                     ? "servers: the cluster's [allreduce] table stands in for them; leave it out"
                     : fmt::format("servers: exchange {} has no servers; leave it out",
                                   name_of(kExchangeNames, strategy.exchange)));
  }
  if (chosen.servers % given.servers_per_host() != 0) {
    return Error(fmt::format("servers: {} do not fill hosts of {}, as the cluster has them",
                             chosen.servers, given.servers_per_host()));
  }
  cluster.topology =
      Topology(given.worker_hosts(), given.workers_per_host(),
               chosen.servers / given.servers_per_host(), 1, given.servers_per_host());
  return cluster;
}

// Whether the servers are where nobody but the preset wants them.
std::string note_on_servers(const Settings& settings, const Cluster& cluster) {
  const ServersApart chosen = servers_apart(settings);
  return cluster.places_servers || cluster.allreduce ? "" : chosen.note(settings.text("preset"));
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
  auto placed = place_servers(settings, *file);
  if (!placed) {
    return placed.error();
  }
  const auto optimizer = optimizer_spec(settings);
  if (!optimizer) {
    return optimizer.error();
  }
  const UpdateRule rule = rule_of(*optimizer, {});
  Cluster cluster = *std::move(placed);
  cluster.update_ns_per_byte *= update_traffic(rule);
  if (const auto fits = check_times(*profile, cluster); !fits) {
    return fits.error().within(settings.text("cluster"));
  }
  auto asked = strategy_spec(settings);
  if (!asked) {
    return asked.error();
  }
  StrategySpec strategy = *std::move(asked);
  if (const auto valid = validate(rule, strategy.strategy); !valid) {
    return valid.error();
  }
  strategy.strategy.sums_first = sums_first(rule);
  std::optional<CodecChoice> codec_choice;
  if (asks_for_codec(strategy)) {
    codec_choice = choose_codec({.strategy = strategy, .profile = *profile, .cluster = cluster});
  }
  strategy = settled(std::move(strategy), codec_choice);
  auto job = simulated_job(strategy, *profile, cluster);
  if (!job) {
    return job.error();
  }
  const auto shares = batch_shares(settings, &cluster);
  if (!shares) {
    return shares.error();
  }
  if (const auto valid = check_shares(*shares, job->strategy, cluster.topology.workers()); !valid) {
    return valid.error();
  }
  std::vector<std::string> notes;
  if (codec_choice) {
    notes.push_back(text_of(*codec_choice));
  }
  if (std::string note = note_on_servers(settings, *file); !note.empty()) {
    notes.push_back(std::move(note));
  }
  if (cluster.allreduce && strategy.strategy.uses_servers()) {
    notes.push_back(fmt::format("the cluster's [allreduce] table stands in for the exchange {}",
                                name_of(kExchangeNames, strategy.strategy.exchange)));
  }
  return SimulatedSetup{.profile = *std::move(profile),
                        .cluster = std::move(cluster),
                        .job = *std::move(job),
                        .preset = settings.text("preset"),
                        .iterations = counted_iterations(settings),
                        .slowdowns = compute_factors(shares->parts),
                        .notes = std::move(notes),
                        .codec_choice = std::move(codec_choice)};
}

}  // namespace sluice::cli
