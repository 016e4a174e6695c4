#include "session/fault_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/random.h"
#include "nodes/host.h"
#include "planner/restarts.h"
#include "session/faulty_phases.h"
#include "session/simulated_job.h"

namespace sluice {
namespace {

// A training that takes so many times as long as a calm one is given up.
constexpr double kPatience = 20;
constexpr double kMostKills = 1e6;

// Where the first iterations are synchronous, they need all workers.
bool ends(const FaultyRun& run, HostId lost, bool is_synchronous) {
  const Strategy& strategy = run.job.strategy;
  const Iteration first = is_synchronous ? run.job.first : strategy.cadence.synchronous;
  return !why_it_ends(strategy, run.cluster.topology, first, lost).empty();
}

struct Kill {
  double at_s;
  HostId host;
};

// The kills that are left to chance, before this time. It may be later than a Time can say.
Result<std::vector<Kill>> drawn_kills(const FaultyRun& run, double end_s) {
  const double mean_s = run.faults.kill_every_s;
  const std::size_t hosts = run.cluster.topology.hosts();
  std::vector<Kill> kills;
  if (mean_s == 0) {
    return kills;
  }
  if (end_s / mean_s * static_cast<double>(hosts) > kMostKills) {
    return Error(
        fmt::format("kill_every_h: kills every {:g} hours of each of {} hosts are more "
                    "than {:g} in the time of the training; take a larger number",
                    mean_s / 3600, hosts, kMostKills));
  }
  for (std::size_t h = 0; h < hosts; ++h) {
    Random random(run.seed, h);
    const auto wait_s = [&] { return -mean_s * std::log(1 - random.uniform()); };
    for (double at_s = wait_s(); at_s < end_s; at_s += wait_s()) {
      kills.push_back({at_s, HostId(h)});
    }
  }
  return kills;
}

// What a job meets: faults with which it goes on, and kills after which it is started again.
struct Met {
  Faults faults;
  std::vector<double> kills_s;
};

// Until `synchronous_s` all iterations are synchronous.
Met sorted(const FaultyRun& run, const std::vector<Kill>& drawn, double synchronous_s,
           double simulated_s) {
  Met met{.faults = run.faults, .kills_s = {}};
  std::erase_if(met.faults.all, [&](const Fault& fault) {
    const double at_s = to_seconds(fault.at);
    const bool ending =
        fault.kind == Fault::Kind::kKill && ends(run, fault.host, at_s < synchronous_s);
    if (ending) {
      met.kills_s.push_back(at_s);
    }
    return ending;
  });
  for (const auto& [at_s, host] : drawn) {
    if (ends(run, host, at_s < synchronous_s)) {
      met.kills_s.push_back(at_s);
    } else if (at_s < simulated_s) {
      met.faults.all.push_back(
          {.kind = Fault::Kind::kKill, .host = host, .at = from_us(at_s * 1e6)});
    }
  }
  std::ranges::sort(met.kills_s);
  std::ranges::stable_sort(met.faults.all, {}, &Fault::at);
  return met;
}

std::int64_t met_before(const Faults& faults, Time end) {
  return std::ranges::count_if(faults.all, [&](const Fault& fault) { return fault.at < end; });
}

nlohmann::ordered_json to_json(std::int64_t faults, double calm_s, double total_s,
                               Iteration iterations_lost, const RestartCosts& restarts) {
  return {{"faults", faults},
          {"calm_s", calm_s},
          {"total_s", total_s},
          {"time_lost_s", total_s - calm_s},
          {"iterations_lost", iterations_lost},
          {"restarts", restarts.restarts},
          {"checkpoints", restarts.checkpoints}};
}

}  // namespace

Fault draw_fault(std::uint64_t seed, std::size_t hosts, Duration end) {
  Random random(seed, 19);
  Fault fault;
  fault.kind = static_cast<Fault::Kind>(random.below(6));
  fault.host = HostId(random.below(hosts));
  fault.at = from_us(to_us(end) * random.uniform());
  fault.length = fault.kind == Fault::Kind::kKill ? Duration{0} : end / 10;
  const bool slow = fault.kind == Fault::Kind::kSlowHost || fault.kind == Fault::Kind::kSlowLink;
  fault.factor = slow ? 10 : 1;
  fault.by = fault.kind == Fault::Kind::kDelay ? end / 100 : Duration{0};
  return fault;
}

// What happens to a job that goes on is simulated. For one that is started again, only the time of
// its iterations is: it may be days of them.
Result<nlohmann::ordered_json> costs_of_faults(FaultyRun run) {
  if (run.job.strategy.partition == Partition::kMerged) {
    plan_groups(run.job, run.profile, run.cluster);
  }
  const Duration calm = simulate_in_phases(run, {}).end;
  if (run.faults.all.empty() && run.faults.kill_every_s == 0) {
    run.faults.all.push_back(draw_fault(run.seed, run.cluster.topology.hosts(), calm));
  }
  const Iteration iterations = run.faults.iterations > 0 ? run.faults.iterations : run.iterations;
  const double all_per_simulated =
      static_cast<double>(iterations) / static_cast<double>(run.iterations);
  const double end_s = kPatience * to_seconds(calm) * all_per_simulated +
                       kPatience * to_seconds(run.faults.detection + run.faults.restart);
  auto drawn = drawn_kills(run, end_s);
  if (!drawn) {
    return drawn.error();
  }
  FaultyRun beginning = run;
  beginning.iterations = std::min(run.iterations, run.job.strategy.cadence.synchronous);
  const Met met = sorted(run, *drawn, to_seconds(simulate_in_phases(beginning, {}).end),
                         kPatience * to_seconds(calm));
  const auto [end, iterations_lost] = simulate_in_phases(run, met.faults);
  if (end == Time{0} && iterations_lost > 0) {
    return Error("no worker is left: the faults kill all hosts with workers before the end");
  }
  if (met.kills_s.empty()) {
    return to_json(met_before(met.faults, end), to_seconds(calm), to_seconds(end), iterations_lost,
                   {});
  }
  const RestartCosts costs =
      with_kills({.iterations = iterations,
                  .iteration_s = to_seconds(calm) / static_cast<double>(run.iterations),
                  .checkpoint_every = run.checkpoint_every,
                  .checkpoint_s = to_seconds(run.faults.checkpoint),
                  .restart_s = to_seconds(run.faults.detection + run.faults.restart)},
                 met.kills_s);
  if (run.faults.kill_every_s > 0 && costs.total_s > end_s) {
    return Error(
        fmt::format("the training takes more than {:g} times as long as without faults; "
                    "write checkpoints more often (--checkpoint-every), or take a larger "
                    "kill_every_h",
                    kPatience));
  }
  return to_json(met_before(met.faults, end) + costs.restarts, to_seconds(calm) * all_per_simulated,
                 costs.total_s + to_seconds(end - calm),
                 costs.repeated * static_cast<Iteration>(run.cluster.topology.workers()), costs);
}

}  // namespace sluice
