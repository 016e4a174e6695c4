#include "nodes/assembly.h"

#include "base/check.h"
#include "nodes/job_rules.h"

namespace sluice {

Assembly assemble(Job job) {
  check(job.first == 0 || traits_of(job.strategy.algorithm).coupling == Coupling::kLockStep,
        "only where all workers step together does nothing hang over between two iterations");
  Assembly assembly;
  const std::size_t servers = job.strategy.uses_servers() ? job.topology.servers() : 1;
  assembly.chunks =
      std::make_shared<ChunkMap>(make_chunks(job.layers, servers, job.strategy, job.groups));
  assembly.rules = std::make_shared<JobRules>(job, assembly.chunks);
  assembly.protocols.resize(job.topology.hosts());
  for (std::size_t h = 0; h < job.topology.hosts(); ++h) {
    if (job.here.value_or(HostId(h)) == HostId(h)) {
      assembly.hosts.push_back(std::make_unique<Host>(job, assembly.chunks, HostId(h)));
      assembly.protocols[h] = assembly.hosts.back().get();
    }
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
