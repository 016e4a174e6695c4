#include "session/simulated_job.h"

#include <fmt/format.h>

#include <utility>

#include "model/aggregation_groups.h"
#include "nodes/presets.h"
#include "partition/merge.h"
#include "planner/allreduce_cost.h"
#include "planner/tuning.h"

namespace sluice {

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
    tune_for_link(job, spec.chosen, cluster.fragment_bytes > 0);
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
