#include "nodes/assembly.h"

#include "base/check.h"

namespace sluice {

Assembly assemble(Job job) {
  check(job.first == 0 || job.strategy.algorithm == Algorithm::kBsp,
        "only where all workers step together does nothing hang over between two iterations");
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
