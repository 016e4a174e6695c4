#include "planner/aggregation.h"

#include <algorithm>

#include "codecs/size.h"
#include "collectives/choice.h"
#include "model/aggregation_groups.h"

namespace sluice {
namespace {

// Between two processes of a machine, in one direction: about what the all-reduces of Open MPI on
// one machine take (docs/performance.md). Workers of one process share their memory.
constexpr double kNsPerByteBetweenProcesses = 0.2;

bool can_aggregate(const Job& job) {
  const Strategy& strategy = job.strategy;
  return strategy.algorithm == Algorithm::kBsp && !strategy.driver_sums() &&
         !strategy.travels_whole() && !strategy.factored() && !strategy.learners_pack;
}

// What the pushes and answers of an iteration take of the busiest link, with servers beside the
// workers or apart.
double servers_us(const Job& job, double bytes) {
  const Topology& topology = job.topology;
  const AggregationGroups groups(job);
  const auto per_machine = static_cast<double>(topology.workers_per_machine());
  const auto speakers = static_cast<double>(groups.size());
  const double machines = static_cast<double>(topology.workers()) / per_machine;
  const double of_machine = speakers / machines;
  const double moved =
      topology.servers_apart()
          ? std::max(of_machine, speakers / static_cast<double>(topology.server_hosts()))
          : 2 * of_machine * (machines - 1) / machines;
  return moved * bytes * job.link.ns_per_byte / 1e3;
}

double link_us(const Job& job) {
  const std::int64_t params = total_params(job.layers);
  if (job.strategy.uses_servers()) {
    return servers_us(job, static_cast<double>(coded_size(job.strategy, params, 1)));
  }
  return to_us(CollectiveChoice(job).choose(params, 0).cost.busy);
}

// What the worker that speaks for its machine takes to get and add the gradients of the others, and
// to pass on the result.
double leader_us(const Job& job) {
  const Topology& topology = job.topology;
  const auto bytes = static_cast<double>(total_params(job.layers) * kFloatBytes);
  const auto others = static_cast<double>(topology.workers_per_machine() - 1);
  const auto elsewhere =
      static_cast<double>(topology.workers_per_machine() - topology.workers_per_host());
  return bytes *
         (others * job.link.reduce_ns_per_byte + 2 * elsewhere * kNsPerByteBetweenProcesses) / 1e3;
}

}  // namespace

bool aggregation_pays(const Job& job) {
  if (job.topology.workers_per_machine() == 1 || job.topology.on_one_machine() ||
      !can_aggregate(job)) {
    return false;
  }
  Job apart = job;
  apart.strategy.local_aggregation = false;
  Job together = job;
  together.strategy.local_aggregation = true;
  const double now = link_us(apart);
  // Of two that take as much of the link, fewer ranks take fewer steps.
  return link_us(together) <= now && leader_us(together) < now;
}

}  // namespace sluice
