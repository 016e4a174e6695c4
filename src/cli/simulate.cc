#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <future>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "drivers/mpi/launch.h"
#include "drivers/virtual/bound.h"
#include "drivers/virtual/limits.h"
#include "drivers/virtual/simulator.h"
#include "formats/cluster.h"
#include "report/table.h"
#include "report/totals.h"
#include "session/merging.h"
#include "session/record.h"
#include "session/simulated_job.h"
#include "session/workload.h"

namespace sluice::cli {
namespace {

// A run of `iterations`, with what was recorded of it.
struct Simulated {
  Assembly assembly;
  SimulationResult result;
  RunTotals totals;
};

Simulated run_job(const Job& job, const Profile& profile, const Cluster& cluster,
                  Iteration iterations, Record& record) {
  Assembly assembly = assemble(job);
  record.watch(assembly);
  SimulationResult result = sluice::simulate({.profile = profile,
                                              .cluster = cluster,
                                              .hosts = assembly.protocols,
                                              .iterations = iterations,
                                              .channel_order = assembly.job.strategy.order,
                                              .observer = record.observer(),
                                              .seed = assembly.job.strategy.seed});
  const RunTotals totals = record.totals(cluster.topology, assembly.counters());
  return {std::move(assembly), std::move(result), totals};
}

// Simulated before the requested iterations, so that those are in the steady state.
constexpr Iteration kWarmUp = 4;

// What the iterations after the warm-up added to the longer of two runs. Their sums differ by
// exactly that, since both runs begin and end in the same way.
Simulated counted(Simulated longer, const Simulated& warm_up) {
  SimulationResult& result = longer.result;
  result.starts.erase(result.starts.begin(), result.starts.begin() + kWarmUp);
  result.messages -= warm_up.result.messages;
  result.bytes -= warm_up.result.bytes;
  result.egress_busy -= warm_up.result.egress_busy;
  result.ingress_busy -= warm_up.result.ingress_busy;
  result.channel_busy -= warm_up.result.channel_busy;
  result.channel_overtakings -= warm_up.result.channel_overtakings;
  result.events -= warm_up.result.events;
  longer.totals -= warm_up.totals;
  return longer;
}

Duration iteration_of(const Simulated& run) {
  const std::vector<Time>& starts = run.result.starts;
  return (starts.back() - starts.front()) / static_cast<std::int64_t>(starts.size() - 1);
}

// All numbers are of the counted iterations.
OrderedJson summarise(const Settings& settings, const Profile& profile, const Cluster& cluster,
                      const Simulated& run) {
  const auto& [assembly, result, totals] = run;
  const Duration iteration = iteration_of(run);
  const Iteration iterations = settings.integer("iterations");
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

// A row for each counted iteration, numbered as in the trace, where the warm-up comes first.
Result<void> write_metrics(const std::vector<Time>& starts, RunFolder& folder) {
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const OrderedJson row{{"iteration", static_cast<Iteration>(i) + kWarmUp},
                          {"start_us", to_us(starts[i])},
                          {"length_us", to_us(starts[i + 1] - starts[i])}};
    if (auto written = folder.append_metrics(row); !written) {
      return written;
    }
  }
  return {};
}

void print_simulation(const OrderedJson& summary) {
  const auto ms = [&](const char* key) {
    return fmt::format("{:.3f} ms", summary[key].get<double>() / 1000);
  };
  const auto percent = [&](const char* key) {
    return fmt::format("{:.1f} %", summary[key].get<double>() * 100);
  };
  const auto number = [&](const char* key, int decimals) {
    return fmt::format("{:.{}f}", summary[key].get<double>(), decimals);
  };
  Table table({{""}, {"", Table::Align::kRight}});
  table.add_row({"preset", summary["preset"]});
  table.add_row({"iteration", ms("iteration_us")});
  table.add_row({"  of it compute", ms("compute_us")});
  table.add_row({"  exposed communication", ms("exposed_communication_us")});
  table.add_row({"lower bound", ms("bound_us")});
  table.add_row({"samples/s", number("samples_per_s", 1)});
  table.add_row({"network out", percent("egress_utilisation")});
  table.add_row({"network in", percent("ingress_utilisation")});
  table.add_row({"messages per iteration", number("messages_per_iteration", 0)});
  table.add_row({"bytes per iteration", number("bytes_per_iteration", 0)});
  table.add_row({"overtakings per iteration, out / in the server",
                 number("overtakings_out_per_iteration", 1) + " / " +
                     number("overtakings_server_per_iteration", 1)});
  table.add_row(
      {"communication hidden",
       fmt::format("{:.1f} %", summary["mechanism"]["hidden_share"].get<double>() * 100)});
  if (summary.contains("merging")) {
    add_rows(summary["merging"], table);
  }
  print(table.render());
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
  if (const std::string note = chosen.note(settings.text("preset")); !note.empty()) {
    spdlog::info(note);
  }
  cluster.topology =
      Topology(given.worker_hosts(), given.workers_per_host(),
               chosen.servers / given.servers_per_host(), 1, given.servers_per_host());
  return cluster;
}

Result<Cluster> read_cluster(const Settings& settings) {
  auto cluster = sluice::read_cluster(settings.path("cluster"));
  return cluster ? place_servers(settings, *std::move(cluster)) : cluster;
}

// Only if the user asks for it, by its name or by a trace in it.
Result<Record> record_for(const Settings& settings, const Profile& profile) {
  if (settings.text("run").empty() && settings.text("trace") != "auto") {
    return Record::without_folder(record_spec(settings));
  }
  const auto spec = record_spec(settings, {{.key = "profile", .name = "profile.json"},
                                           {.key = "cluster", .name = "cluster.toml"}});
  if (!spec) {
    return spec.error();
  }
  return Record::open(*spec, "simulate-" + settings.text("preset") + "-" + profile.name);
}

}  // namespace

int simulate(const Settings& settings) {
  const auto profile = scaled_profile(profile_spec(settings.path("profile"), settings));
  if (!profile) {
    return bad_input(profile.error());
  }
  const auto cluster = read_cluster(settings);
  if (!cluster) {
    return bad_input(cluster.error());
  }
  if (const auto fits = check_times(*profile, *cluster); !fits) {
    return bad_input(fits.error().within(settings.text("cluster")));
  }
  const StrategySpec strategy = strategy_spec(settings);
  auto valid = simulated_job(strategy, *profile, *cluster);
  if (!valid) {
    return bad_input(valid.error());
  }
  if (cluster->allreduce && strategy.strategy.uses_servers()) {
    spdlog::info("the cluster's [allreduce] table stands in for the exchange {}",
                 name_of(kExchangeNames, strategy.strategy.exchange));
  }
  Job job = *std::move(valid);
  auto opened = record_for(settings, *profile);
  if (!opened) {
    return bad_input(opened.error());
  }
  Record record = *std::move(opened);
  const bool merges = job.strategy.partition == Partition::kMerged;
  Merging merging = merges ? plan_groups(job, *profile, *cluster) : Merging{};
  Record aside;
  // On another core, so that the user does not wait for the warm-up twice.
  auto warm_up = std::async(std::launch::async,
                            [&] { return run_job(job, *profile, *cluster, kWarmUp, aside); });
  Simulated longer =
      run_job(job, *profile, *cluster, kWarmUp + settings.integer("iterations"), record);
  const Simulated simulated = counted(std::move(longer), warm_up.get());
  OrderedJson summary = summarise(settings, *profile, *cluster, simulated);
  if (merges) {
    merging.groups = groups_of(simulated.assembly);
    merging.iteration = iteration_of(simulated);
    summary["merging"] = to_json(merging);
  }
  if (record.has_folder()) {
    if (const auto written = write_metrics(simulated.result.starts, record.folder()); !written) {
      return failed(written.error());
    }
  }
  if (const auto closed = record.close(summary, {host_name()}); !closed) {
    return failed(closed.error());
  }
  if (settings.on("json")) {
    print(summary);
    return kOk;
  }
  print_simulation(summary);
  if (record.has_folder()) {
    print(fmt::format("report in {}\n", record.folder().path().string()));
  }
  return kOk;
}

}  // namespace sluice::cli
