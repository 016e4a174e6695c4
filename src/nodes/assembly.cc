#include "nodes/assembly.h"

#include "nodes/job_rules.h"

namespace sluice {

Assembly assemble(Job job) {
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

std::map<NodeId, Iteration> Assembly::ended() const {
  std::map<NodeId, Iteration> all;
  for (const auto& host : hosts) {
    all.insert(host->ended().begin(), host->ended().end());
  }
  return all;
}

const Host& Assembly::host_of(NodeId worker) const {
  return *hosts.at(job.here ? 0 : job.topology.host_of(worker).index());
}

std::span<double> Assembly::weights(NodeId worker) const { return host_of(worker).weights(worker); }

std::span<Payload> Assembly::kept(NodeId worker) const { return host_of(worker).kept(worker); }

std::span<const Iteration> Assembly::last_sums(NodeId worker) const {
  return host_of(worker).last_sums(worker);
}

std::span<const Iteration> Assembly::sums_given_up(NodeId worker) const {
  return host_of(worker).sums_given_up(worker);
}

Counters Assembly::counters() const {
  Counters sum;
  for (const auto& host : hosts) {
    sum += host->counters();
  }
  return sum;
}

}  // namespace sluice
