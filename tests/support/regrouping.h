#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "nodes/catch_ups.h"
#include "nodes/regrouped_job.h"
#include "partition/fragments.h"
#include "state/later_sums.h"
#include "support/shuffled_run.h"

namespace sluice::testing {

// The workers of a job that are not on hosts that are absent, by rank.
inline std::vector<std::size_t> living_workers(const Job& job) {
  std::vector<std::size_t> workers;
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    if (std::ranges::count(job.absent, job.topology.host_of(NodeId(w))) == 0) {
      workers.push_back(w);
    }
  }
  return workers;
}

// Between two runs of a job whose sums can be given up, what a session does with texts: workers
// that are not on these hosts agree on the same sums, and go on from `next` without the others.
// Returns how many chunks were taken from another worker.
inline std::size_t regroup(ShuffledRun& run, const std::vector<HostId>& absent, Iteration next) {
  const Job& job = run.assembly.job;
  std::map<NodeId, std::vector<Iteration>> last_sums;
  for (const std::size_t worker : living_workers(job_without(absent, {}, job, next))) {
    const auto sums = run.assembly.last_sums(NodeId(worker));
    last_sums[NodeId(worker)] = {sums.begin(), sums.end()};
  }
  const Cadence& cadence = job.strategy.cadence;
  const auto fragments = fragments_of(*run.assembly.chunks, cadence.fragments);
  const CatchUps catch_ups = find_catch_ups(last_sums, fragments, cadence, next);
  for (const CatchUp& one : catch_ups.all) {
    const Range range = (*run.assembly.chunks)[one.chunk].range;
    const auto from = run.world.state().workspace(one.from).in_common(range);
    const auto to = run.world.state().workspace(one.worker).in_common(range);
    for (std::size_t part = 0; part < from.size(); ++part) {
      std::ranges::copy(from[part], to[part].begin());
    }
    if (cadence.under_way_at(next, fragments[one.chunk.index()]) != one.sum) {
      run.world.state().workspace(one.worker).take_over(range);
    }
  }
  for (const CatchUp& one : catch_ups.all) {
    last_sums[one.worker].at(one.chunk.index()) = one.sum;
  }
  for (const auto& [worker, sums] : last_sums) {
    const auto given_up = run.assembly.sums_given_up(worker);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      if (given_up[c] > sums[c]) {
        run.world.state().workspace(worker).give_up_exchange(
            (*run.assembly.chunks)[ChunkId(c)].range);
      }
    }
  }
  Job on = job_without(absent, catch_ups.given_up, job, next);
  keep_means(run.world.state(), *run.assembly.chunks, living_workers(on), job, on);
  run.go_on_with(std::move(on));
  return catch_ups.all.size();
}

// Between two runs: workers take local steps from `next` on, after synchronous ones.
inline void take_over_at(ShuffledRun& run, Iteration next) {
  Job on = run.assembly.job;
  on.first = next;
  run.go_on_with(std::move(on));
}

// After regroup(): the host is there again, with what the donor has.
inline void rejoin(ShuffledRun& run, HostId host, HostId donor, Iteration next) {
  const std::vector<PeerJoined> joined{{host, next}};
  Job on = job_with(joined, run.assembly.job, next);
  const Job& before = run.assembly.job;
  keep_means(run.world.state(), *run.assembly.chunks, living_workers(before), before, on);
  run.revive(host, donor, next);
  run.go_on_with(std::move(on));
}

}  // namespace sluice::testing
