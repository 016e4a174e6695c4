#include "algorithms/assembly.h"

#include "base/check.h"

namespace sluice {
namespace {

// Memory has no queue that short hops and a small credit would keep short; fewer messages cost
// less.
void suit_shared_memory(Strategy& strategy) {
  const Strategy usual;
  if (strategy.segment_params == usual.segment_params) {
    strategy.segment_params = 262'144;
  }
  if (strategy.peer_credit == usual.peer_credit) {
    strategy.peer_credit = 8'000'000;
  }
}

}  // namespace

Assembly assemble(Job job) {
  check(job.first == 0 || job.strategy.algorithm == Algorithm::kBsp,
        "only where all workers step together does nothing hang over between two iterations");
  if (job.topology.on_one_machine()) {
    suit_shared_memory(job.strategy);
  }
  Assembly assembly;
  const std::size_t servers = job.strategy.uses_servers() ? job.topology.servers() : 1;
  assembly.chunks =
      std::make_shared<ChunkMap>(make_chunks(job.layers, servers, job.strategy, job.groups));
  for (std::size_t h = 0; h < job.topology.hosts(); ++h) {
    assembly.hosts.push_back(std::make_unique<Host>(job, assembly.chunks, HostId(h)));
    assembly.protocols.push_back(assembly.hosts.back().get());
  }
  assembly.job = std::move(job);
  return assembly;
}

Counters Assembly::counters() const {
  Counters sum;
  for (const auto& host : hosts) {
    sum += host->counters();
  }
  return sum;
}

}  // namespace sluice
