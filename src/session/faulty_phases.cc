#include "session/faulty_phases.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "drivers/virtual/simulator.h"
#include "nodes/assembly.h"
#include "nodes/catch_ups.h"
#include "nodes/regrouped_job.h"
#include "partition/fragments.h"

namespace sluice {
namespace {

bool has(const std::vector<HostId>& hosts, HostId host) {
  return std::ranges::find(hosts, host) != hosts.end();
}

// What is still to come, or lasts, at this time. Who is killed before the others can go on without
// it lives until then.
Faults still_to_come(const Faults& faults, Time now, const std::vector<HostId>& absent) {
  Faults later = faults;
  std::erase_if(later.all, [&](const Fault& fault) {
    return fault.kind == Fault::Kind::kKill ? has(absent, fault.host)
                                            : fault.at + fault.length <= now;
  });
  for (Fault& fault : later.all) {
    const Time end = fault.at + fault.length;
    fault.at = std::max(fault.at, now);
    fault.length = fault.kind == Fault::Kind::kKill ? Duration{0} : end - fault.at;
    fault.at -= now;
  }
  return later;
}

Faults without_kills(Faults faults) {
  std::erase_if(faults.all, [](const Fault& fault) { return fault.kind == Fault::Kind::kKill; });
  return faults;
}

// As a session regroups.
Job without(const std::vector<HostId>& lost, const Assembly& assembly, Iteration first) {
  const Job& job = assembly.job;
  std::vector<HostId> absent = job.absent;
  absent.insert(absent.end(), lost.begin(), lost.end());
  std::ranges::sort(absent);
  std::map<NodeId, std::vector<Iteration>> last_sums;
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    const NodeId worker = job.topology.worker(w);
    if (!has(absent, job.topology.host_of(worker))) {
      const auto sums = assembly.last_sums(worker);
      last_sums[worker] = {sums.begin(), sums.end()};
    }
  }
  const Cadence& cadence = job.strategy.cadence;
  CatchUps catch_ups =
      find_catch_ups(last_sums, fragments_of(*assembly.chunks, cadence.fragments), cadence, first);
  return job_without(std::move(absent), std::move(catch_ups.given_up), job, first);
}

SimulationResult simulate_phase(const FaultyRun& run, const Assembly& assembly, Iteration last,
                                const Faults& faults) {
  const Job& job = assembly.job;
  return simulate({.profile = run.profile,
                   .cluster = run.cluster,
                   .hosts = assembly.protocols,
                   .iterations = last,
                   .channel_order = job.strategy.order,
                   .slowdowns = run.slowdowns,
                   .seed = job.strategy.seed,
                   .faults = &faults,
                   .first = job.first,
                   .absent = job.absent,
                   .ends_after_loss = job.strategy.sums_can_be_given_up()});
}

bool leaves_nobody(const Job& job, const SimulationResult& result) {
  return job.absent.size() + result.lost.size() == job.topology.worker_hosts();
}

}  // namespace

FaultyTime simulate_in_phases(const FaultyRun& run, const Faults& faults) {
  const Strategy& strategy = run.job.strategy;
  const Iteration together = strategy.sums_can_be_given_up() ? strategy.cadence.synchronous : 0;
  FaultyTime time;
  Job job = run.job;
  while (job.first < run.iterations) {
    const bool is_together = job.first < together;
    const Faults later = still_to_come(faults, time.end, job.absent);
    const Assembly assembly = assemble(job);
    const Iteration last = is_together ? std::min(together, run.iterations) : run.iterations;
    const SimulationResult result =
        simulate_phase(run, assembly, last, is_together ? without_kills(later) : later);
    const bool ended_before_loss = result.starts.back() > Time{0};
    const Iteration reached = ended_before_loss ? last : result.ended_at.value_or(last);
    const Duration took = result.starts[static_cast<std::size_t>(reached)];
    const bool goes_on = reached < run.iterations;
    time.iterations_lost += result.iterations_lost;
    if (goes_on ? leaves_nobody(job, result) : took == Duration{0}) {
      return {.end = Duration{0}, .iterations_lost = time.iterations_lost};
    }
    time.end += took + (goes_on && !result.lost.empty() ? faults.regrouping : Duration{0});
    if (!goes_on) {
      break;
    }
    job = without(result.lost, assembly, reached);
  }
  return time;
}

}  // namespace sluice
