#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "nodes/catch_ups.h"
#include "partition/fragments.h"
#include "support/shuffled_run.h"

namespace sluice::testing {

// Between two runs of a job whose sums can be given up, what a session does with texts: workers
// that are not on these hosts agree on the same sums, and go on from `next` without the others.
// Returns how many chunks were taken from another worker.
inline std::size_t regroup(ShuffledRun& run, const std::vector<HostId>& absent, Iteration next) {
  const Job& job = run.assembly.job;
  std::map<NodeId, std::vector<Iteration>> last_sums;
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    if (std::ranges::find(absent, job.topology.host_of(NodeId(w))) == absent.end()) {
      const auto sums = run.assembly.last_sums(NodeId(w));
      last_sums[NodeId(w)] = {sums.begin(), sums.end()};
    }
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
  Job on = job;
  on.first = next;
  on.absent = absent;
  on.given_up = catch_ups.given_up;
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
  run.revive(host, donor, next);
  Job on = run.assembly.job;
  on.first = next;
  std::erase(on.absent, host);
  run.go_on_with(std::move(on));
}

}  // namespace sluice::testing
