#include "session/simulated_job.h"

#include <fmt/format.h>

#include <utility>

#include "drivers/virtual/limits.h"
#include "model/aggregation_groups.h"
#include "nodes/presets.h"
#include "nodes/validate_factored.h"
#include "nodes/validate_update.h"
#include "partition/merge.h"
#include "planner/allreduce_cost.h"
#include "planner/tuning.h"
#include "session/optimizer.h"

namespace sluice {
namespace {

Result<Cluster> place_servers(const ServersApart& chosen, const Strategy& strategy,
                              Cluster cluster) {
  const Topology given = cluster.topology;
  if (chosen.by_preset && (cluster.places_servers || cluster.allreduce)) {
    return cluster;
  }
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

}  // namespace

Result<SimulatedCase> simulated_case(StrategySpec spec, const ServersApart& servers,
                                     const UpdateRule& rule, const Profile& profile,
                                     const Cluster& cluster, const std::string& name) {
  auto placed = place_servers(servers, spec.strategy, cluster);
  if (!placed) {
    return placed.error();
  }
  SimulatedCase made{.cluster = *std::move(placed), .job = {}};
  made.cluster.update_ns_per_byte *= update_traffic(rule);
  if (const auto fits = check_times(profile, made.cluster); !fits) {
    return fits.error().within(name);
  }
  if (const auto valid = validate(rule, spec.strategy); !valid) {
    return valid.error();
  }
  spec.strategy.sums_first = sums_first(rule);
  if (asks_for_codec(spec)) {
    made.codec_choice =
        choose_codec({.strategy = spec, .profile = profile, .cluster = made.cluster});
  }
  auto job = simulated_job(settled(spec, made.codec_choice), profile, made.cluster);
  if (!job) {
    return job.error();
  }
  made.job = *std::move(job);
  return made;
}

Result<Job> simulated_job(const StrategySpec& spec, const Profile& profile,
                          const Cluster& cluster) {
  Job job;
  job.layers = profile.layout();
  job.topology = cluster.topology;
  job.strategy = spec.strategy;
  job.server_threads = cluster.server_threads;
  job.link = cluster.link();
  if (cluster.fragment_bytes > 0 || cluster.charges_messages()) {
    // Here the length of a message has a cost: use the sizes with which train would run.
    ChosenSizes chosen = spec.chosen;
    chosen.local_aggregation = chosen.local_aggregation || cluster.allreduce.has_value();
    tune_for_link(job, chosen, cluster.fragment_bytes > 0);
  }
  if (cluster.allreduce.has_value()) {
    if (AggregationGroups(job).group() > 1) {
      return Error(
          "local-aggregation: the cluster's [allreduce] table stands for the sum over all "
          "workers; leave it off, or use a cluster without that table");
    }
    if (job.strategy.uses_servers() && job.strategy.partition == Partition::kKvstore) {
      return Error(
          "cluster: its [allreduce] table stands in for the network, and partition kvstore "
          "splits layers over servers; use another partition, or a cluster without that table");
    }
    job.strategy.exchange = Exchange::kAllReduce;
    job.strategy.collective = Collective::kNative;
  } else if (job.strategy.driver_sums()) {
    return Error(fmt::format(
        "collective: {} is a sum that the workers do not make with messages; the [allreduce] "
        "table "
        "of a cluster can describe it, and this cluster has none; use another collective",
        name_of(kCollectiveNames, *job.strategy.collective)));
  }
  if (const auto valid = validate(job.strategy); !valid) {
    return valid.error();
  }
  if (const auto known = check_matrices(job.strategy, job.layers); !known) {
    return known.error();
  }
  return job;
}

Merging plan_groups(Job& job, const Profile& profile, const Cluster& cluster) {
  Merging merging{.groups = {}, .cost = simulated_allreduce(job, cluster)};
  // The prediction is exact for a channel that makes one sum at a time.
  const double gain = cluster.allreduce ? 0 : kMergeGain;
  MergePlan plan = merge_if_faster(profile, merging.cost, job.strategy.merge, gain);
  job.groups = std::move(plan.groups);
  merging.as = plan.as;
  merging.predicted = plan.iteration;
  return merging;
}

}  // namespace sluice
