#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "drivers/virtual/bound.h"
#include "drivers/virtual/simulator.h"
#include "formats/cluster.h"
#include "nodes/presets.h"
#include "partition/merge.h"
#include "planner/allreduce_cost.h"
#include "planner/tuning.h"
#include "report/table.h"
#include "session/record.h"
#include "session/workload.h"

namespace sluice::cli {
namespace {

Result<Job> job_of(const Settings& settings, const Profile& profile, const Cluster& cluster) {
  Job job;
  job.layers = profile.layout();
  job.topology = cluster.topology;
  job.strategy = settings.strategy();
  job.server_threads = cluster.server_threads;
  job.link = cluster.link();
  if (cluster.fragment_bytes > 0) {
    // There the length of a message has a price: the sizes are those with which train would run.
    tune_for_link(job, settings.chosen_sizes());
  }
  if (cluster.allreduce.has_value()) {
    if (job.strategy.local_aggregation) {
      return Error(
          "--local-aggregation: the cluster's [allreduce] table stands for the sum over all "
          "workers; leave it off, or take a cluster without that table");
    }
    if (job.strategy.uses_servers()) {
      if (job.strategy.partition == Partition::kKvstore) {
        return Error(
            "--cluster: its [allreduce] table stands in for the network, and partition kvstore "
            "splits layers over servers; take another partition, or a cluster without that table");
      }
      spdlog::info("the cluster's [allreduce] table stands in for the exchange {}",
                   name_of(kExchangeNames, job.strategy.exchange));
    }
    job.strategy.exchange = Exchange::kAllReduce;
    job.strategy.collective = Collective::kNative;
  } else if (job.strategy.driver_sums()) {
    return Error(fmt::format(
        "--collective: {} is a sum that the workers do not make by messages; the [allreduce] table "
        "of a cluster can describe it, and this cluster has none; take another collective",
        name_of(kCollectiveNames, *job.strategy.collective)));
  }
  if (const auto valid = validate(job.strategy); !valid) {
    return valid.error();
  }
  return job;
}

// Groups the layers for partition merged, by what the simulator is going to charge.
Merging plan_groups(Job& job, const Profile& profile, const Cluster& cluster) {
  Merging merging{.groups = {}, .cost = simulated_allreduce(job, cluster)};
  MergePlan plan = merge(profile, merging.cost, job.strategy.merge);
  job.groups = std::move(plan.groups);
  merging.predicted = plan.iteration;
  return merging;
}

// Simulated before the iterations that are asked for, so that those are of the steady state.
constexpr Iteration kWarmUp = 4;

OrderedJson summarise(const Settings& settings, const Profile& profile, const Cluster& cluster,
                      const Assembly& assembly, const SimulationResult& result,
                      const Record& record) {
  const Duration iteration = result.iteration_time();
  const auto simulated = static_cast<double>(result.starts.size() - 1);
  const Iteration iterations = settings.integer("iterations");
  const auto share = [&](Duration busy) {
    return iteration.count() > 0 ? to_us(busy) / simulated / to_us(iteration) : 0.0;
  };
  const auto of_run = [&](std::int64_t total) {
    return std::llround(static_cast<double>(total) / simulated * static_cast<double>(iterations));
  };
  const bool channel = cluster.allreduce.has_value();
  const auto samples =
      static_cast<double>(profile.batch) * static_cast<double>(cluster.topology.workers());
  const Strategy& strategy = assembly.job.strategy;
  OrderedJson summary{
      {"preset", settings.text("preset")},
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
      {"messages", of_run(result.messages)},
      {"bytes", of_run(result.bytes)},
      {"messages_per_iteration", static_cast<double>(result.messages) / simulated},
      {"bytes_per_iteration", static_cast<double>(result.bytes) / simulated},
      {"overtakings_channel", result.channel_overtakings},
      {"events", result.events},
  };
  summary["breakdown"] =
      breakdown_of(record, cluster.topology, static_cast<Iteration>(result.starts.size() - 1));
  summary["mechanism"] = mechanism_of(assembly, assembly.counters(), record.tally());
  return summary;
}

// A row an iteration, those of the warm-up included.
Result<void> write_metrics(const SimulationResult& result, RunFolder& folder) {
  for (std::size_t i = 0; i + 1 < result.starts.size(); ++i) {
    const OrderedJson row{{"iteration", i},
                          {"start_us", to_us(result.starts[i])},
                          {"length_us", to_us(result.starts[i + 1] - result.starts[i])}};
    if (auto written = folder.append_metrics(row); !written) {
      return written;
    }
  }
  return {};
}

void print_simulation(const OrderedJson& summary, const std::string& folder) {
  const auto ms = [&](const char* key) {
    return fmt::format("{:.3f} ms", summary[key].get<double>() / 1000);
  };
  const auto percent = [&](const char* key) {
    return fmt::format("{:.1f} %", summary[key].get<double>() * 100);
  };
  const auto& mechanism = summary["mechanism"];
  Table table({{""}, {"", Table::Align::kRight}});
  table.add_row({"preset", summary["preset"]});
  table.add_row({"iteration", ms("iteration_us")});
  table.add_row({"  of it compute", ms("compute_us")});
  table.add_row({"  exposed communication", ms("exposed_communication_us")});
  table.add_row({"lower bound", ms("bound_us")});
  table.add_row({"samples/s", fmt::format("{:.1f}", summary["samples_per_s"].get<double>())});
  table.add_row({"network out", percent("egress_utilisation")});
  table.add_row({"network in", percent("ingress_utilisation")});
  table.add_row({"messages an iteration",
                 fmt::format("{:.0f}", summary["messages_per_iteration"].get<double>())});
  table.add_row(
      {"bytes an iteration", fmt::format("{:.0f}", summary["bytes_per_iteration"].get<double>())});
  table.add_row({"overtakings out / in the server",
                 fmt::format("{} / {}",
                             mechanism["overtakings_egress"].get<std::int64_t>() +
                                 summary["overtakings_channel"].get<std::int64_t>(),
                             mechanism["overtakings_inbox"].get<std::int64_t>())});
  table.add_row({"communication hidden",
                 fmt::format("{:.1f} %", mechanism["hidden_share"].get<double>() * 100)});
  if (summary.contains("merging")) {
    add_rows(summary["merging"], table);
  }
  print(table.render());
  print(fmt::format("report in {}\n", folder));
}

}  // namespace

int simulate(const Settings& settings) {
  const auto profile = scaled_profile(settings.text("profile"), settings);
  if (!profile) {
    return bad_input(profile.error());
  }
  const auto cluster = read_cluster(settings.text("cluster"));
  if (!cluster) {
    return bad_input(cluster.error());
  }
  auto valid = job_of(settings, *profile, *cluster);
  if (!valid) {
    return bad_input(valid.error());
  }
  Job job = *std::move(valid);
  auto record = Record::open(settings, "simulate-" + settings.text("preset") + "-" + profile->name);
  if (!record) {
    return bad_input(record.error());
  }
  Record kept = *std::move(record);
  const bool merges = job.strategy.partition == Partition::kMerged;
  Merging merging = merges ? plan_groups(job, *profile, *cluster) : Merging{};
  const Assembly assembly = assemble(std::move(job));
  kept.watch(assembly);
  const SimulationResult result =
      sluice::simulate({.profile = *profile,
                        .cluster = *cluster,
                        .hosts = assembly.protocols,
                        .iterations = settings.integer("iterations") + kWarmUp,
                        .channel_order = assembly.job.strategy.order,
                        .observer = kept.observer()});
  OrderedJson summary = summarise(settings, *profile, *cluster, assembly, result, kept);
  if (merges) {
    merging.groups = groups_of(assembly);
    merging.iteration = result.iteration_time();
    summary["merging"] = to_json(merging);
  }
  if (const auto written = write_metrics(result, kept.folder()); !written) {
    return failed(written.error());
  }
  if (const auto closed = kept.close(summary); !closed) {
    return failed(closed.error());
  }
  if (settings.on("json")) {
    print(summary);
  } else {
    print_simulation(summary, kept.folder().path());
  }
  return kOk;
}

}  // namespace sluice::cli
