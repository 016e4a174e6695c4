#include "session/steady_run.h"

#include <utility>

#include "drivers/virtual/bound.h"
#include "drivers/virtual/simulator.h"
#include "report/totals.h"
#include "session/merging.h"
#include "session/simulated_job.h"

namespace sluice {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A run, with what was recorded of the iterations that count.
struct Simulated {
  Assembly assembly;
  SimulationResult result;
  RunTotals totals;
};

// Whole turns of a cadence, so that each of its exchanges counts as often as it comes.
Iteration counted(const SteadyRun& run) {
  const Iteration every = run.job.strategy.cadence.every;
  return (run.iterations + every - 1) / every * every;
}

// With a turn more, so that as much is in flight at the beginning as at the end.
Iteration warm_up_of(const Strategy& strategy) {
  return kSimulatedWarmUp + strategy.cadence.every - 1;
}

Simulated run_job(const Job& job, const SteadyRun& run, Record& record) {
  const auto& [ignored, profile, cluster, preset, asked, slowdowns] = run;
  const Iteration iterations = counted(run);
  const Iteration warm_up = warm_up_of(job.strategy);
  Assembly assembly = assemble(job);
  for (const auto& host : assembly.hosts) {
    host->count_from(warm_up + 1);
  }
  record.watch_after(warm_up, assembly);
  SimulationResult result = simulate({.profile = profile,
                                      .cluster = cluster,
                                      .hosts = assembly.protocols,
                                      .iterations = warm_up + iterations,
                                      .channel_order = assembly.job.strategy.order,
                                      .observer = record.observer(),
                                      .slowdowns = slowdowns,
                                      .seed = assembly.job.strategy.seed,
                                      .warm_up = warm_up});
  result.starts.erase(result.starts.begin(), result.starts.begin() + warm_up);
  const RunTotals totals = record.totals(cluster.topology, assembly.counters());
  return {std::move(assembly), std::move(result), totals};
}

Duration iteration_of(const Simulated& run) {
  const std::vector<Time>& starts = run.result.starts;
  return (starts.back() - starts.front()) / static_cast<std::int64_t>(starts.size() - 1);
}

// All numbers are of the counted iterations.
OrderedJson summarise(const std::string& preset, Iteration iterations, const Profile& profile,
                      const Cluster& cluster, const Simulated& run) {
  const auto& [assembly, result, totals] = run;
  const Duration iteration = iteration_of(run);
  const auto each = [&](std::int64_t total) {
    return static_cast<double>(total) / static_cast<double>(iterations);
  };
  const auto share = [&](Duration busy) {
    return iteration.count() > 0 ? each(busy.count()) / static_cast<double>(iteration.count())
                                 : 0.0;
  };
  const bool channel = cluster.allreduce.has_value();
  const auto samples =
      static_cast<double>(profile.batch) * static_cast<double>(cluster.topology.workers());
  const Strategy& strategy = assembly.job.strategy;
  const Counters& counters = totals.counters;
  OrderedJson summary{
      {"preset", preset},
      {"algorithm", name_of(kAlgorithmNames, strategy.algorithm)},
      {"exchange", name_of(kExchangeNames, strategy.exchange)},
      {"partition", name_of(kPartitionNames, strategy.partition)},
      {"order", name_of(kOrderNames, strategy.order)},
      {"codec", name_of(kCodecNames, strategy.codec)},
      {"profile", profile.name},
      {"hosts", cluster.topology.hosts()},
      {"workers", cluster.topology.workers()},
      {"iterations", iterations},
      {"iteration_us", to_us(iteration)},
      {"compute_us", to_us(profile.compute())},
      {"samples_per_s", iteration.count() > 0 ? samples / to_seconds(iteration) : 0.0},
      {"exposed_communication_us", to_us(iteration - profile.compute())},
      {"bound_us", to_us(lower_bound(profile, cluster, strategy, *assembly.chunks))},
      {"egress_utilisation", share(channel ? result.channel_busy : result.egress_busy)},
      {"ingress_utilisation", share(channel ? result.channel_busy : result.ingress_busy)},
      {"messages", result.messages},
      {"bytes", result.bytes},
      {"messages_per_iteration", each(result.messages)},
      {"bytes_per_iteration", each(result.bytes)},
      {"overtakings_channel", result.channel_overtakings},
      {"overtakings_out_per_iteration",
       each(counters.egress_overtakings + result.channel_overtakings)},
      {"overtakings_server_per_iteration", each(counters.inbox_overtakings)},
      {"events", result.events},
  };
  summary["breakdown"] = breakdown_of(totals, cluster.topology, iterations);
  summary["mechanism"] = mechanism_of(assembly, totals);
  return summary;
}

}  // namespace

SimulationReport simulate_steadily(const SteadyRun& run, Record& record) {
  const Profile& profile = run.profile;
  const Cluster& cluster = run.cluster;
  Job job = run.job;
  job.strategy.cadence.synchronous = 0;  // what comes after them is steady
  const bool merges = job.strategy.partition == Partition::kMerged;
  Merging merging = merges ? plan_groups(job, profile, cluster) : Merging{};
  const Simulated simulated = run_job(job, run, record);
  OrderedJson summary = summarise(run.preset, counted(run), profile, cluster, simulated);
  if (merges) {
    merging.groups = groups_of(simulated.assembly);
    merging.iteration = iteration_of(simulated);
    summary["merging"] = to_json(merging);
  }
  return {std::move(summary), warm_up_of(job.strategy), simulated.result.starts};
}

}  // namespace sluice
