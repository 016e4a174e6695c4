// How the nodes of a run get back what a checkpoint has of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "partition/chunk_map.h"
#include "session/former_hosts.h"
#include "session/host_copies.h"
#include "session/node_knowledge.h"
#include "session/resumption.h"
#include "state/later_sums.h"
#include "state/resharding.h"

namespace sluice {
namespace {

// With the chunks that the servers of the run had.
FormerNodes former_nodes(const Resumption& from, const Job& job) {
  Job former = job;
  former.topology = *from.former;
  adopt_measured(from.manifest.measured, former);
  const std::size_t servers = job.strategy.uses_servers() ? former.topology.servers() : 1;
  return {former.topology, make_chunks(job.layers, servers, former.strategy, former.groups)};
}

std::vector<HostId> own_hosts(const Job& job) {
  return job.here ? std::vector{*job.here} : all_hosts(job.topology);
}

// What a worker of one host has, under the names of the same worker of another.
void rename(std::vector<StoredTensor>& tensors, HostId from, HostId to, const Topology& topology) {
  const auto before = topology.nodes_on(from);
  const auto after = topology.nodes_on(to);
  for (std::size_t n = 0; n < topology.workers_per_host(); ++n) {
    const std::string prefix = saved_prefix(before[n], topology);
    for (StoredTensor& tensor : tensors) {
      if (tensor.name.starts_with(prefix)) {
        tensor.name.replace(0, prefix.size(), saved_prefix(after[n], topology));
      }
    }
  }
}

// What a codec of the donor has not sent yet it will send itself.
bool is_kept_back(const StoredTensor& tensor) {
  return tensor.name.find(".residual") != std::string::npos ||
         tensor.name.find(".dgc.") != std::string::npos;
}

class Restoration {
 public:
  Restoration(const Resumption& from, const Assembly& assembly, TrainingState& state)
      : from_(from), assembly_(assembly), job_(assembly.job), state_(state) {}

  void run();

 private:
  void restore_host(HostId host, const std::string& bytes);
  void reshard();
  void take_from_servers();
  void keep_means_of_sums();
  HostState state_of(HostId host) const { return host_state(assembly_, state_, host); }
  // These throw if the file of the host is not sound or does not fit.
  void expect(HostId host, const Result<void>& step) const;
  std::string read(HostId host) const;
  // Views of the bytes.
  std::vector<StoredTensor> parsed(HostId host, const std::string& bytes) const;

  const Resumption& from_;
  const Assembly& assembly_;
  const Job& job_;
  TrainingState& state_;
};

void Restoration::run() {
  if (from_.former) {
    return reshard();
  }
  for (const auto& [host, bytes] : from_.files) {
    restore_host(host, bytes);
  }
  if (from_.joins) {
    return;
  }
  if (servers_tell_changes(job_.strategy)) {
    take_from_servers();
  }
  if (job_.strategy.sums_can_be_given_up()) {
    keep_means_of_sums();
  }
}

// The run had lost the hosts that have donors.
void Restoration::keep_means_of_sums() {
  Job former = job_;
  std::ranges::copy(from_.donors | std::views::keys, std::back_inserter(former.absent));
  for (const HostId host : own_hosts(job_)) {
    for (const NodeId node : job_.topology.nodes_on(host)) {
      if (job_.topology.is_worker(node)) {
        keep_means(state_, *assembly_.chunks, std::array{node.index()}, former, job_);
      }
    }
  }
}

void Restoration::restore_host(HostId host, const std::string& bytes) {
  const auto donor = from_.donors.find(host);
  const HostId source = donor == from_.donors.end() ? host : donor->second;
  std::vector<StoredTensor> tensors = parsed(source, bytes);
  if (source != host) {
    rename(tensors, source, host, job_.topology);
    std::erase_if(tensors, is_kept_back);
  }
  const auto takes = [&](const auto& other) { return other.second == source; };
  const auto share = 1.0 / static_cast<double>(1 + std::ranges::count_if(from_.donors, takes));
  expect(source, take_knowledge(tensors, assembly_, host, share));
  expect(source, restore_state(tensors, state_of(host)));
}

void Restoration::reshard() {
  Resharding resharding(
      former_nodes(from_, job_),
      {.state = state_, .job = job_, .chunks = *assembly_.chunks, .hosts = own_hosts(job_)});
  for (const HostId host : former_files(*from_.former, job_.strategy)) {
    const std::string bytes = read(host);
    expect(host, resharding.take(host, parsed(host, bytes)));
  }
}

// From now on they count anew what they have told to whom. So all workers begin with what the
// servers have.
void Restoration::take_from_servers() {
  for (const HostId host : all_hosts(job_.topology)) {
    const auto nodes = job_.topology.nodes_on(host);
    const auto is_server = [&](NodeId node) { return !job_.topology.is_worker(node); };
    if (std::ranges::none_of(nodes, is_server)) {
      continue;
    }
    const std::string bytes = read(host);
    const std::vector<StoredTensor> tensors = parsed(host, bytes);
    for (const HostId own : own_hosts(job_)) {
      expect(host, copy_servers(tensors, host, state_of(own)));
    }
  }
}

std::string Restoration::read(HostId host) const {
  auto bytes = read_host_file(from_, host);
  expect(host, bytes ? Result<void>() : bytes.error());
  return *std::move(bytes);
}

std::vector<StoredTensor> Restoration::parsed(HostId host, const std::string& bytes) const {
  auto tensors = parse_safetensors(std::as_bytes(std::span(bytes)));
  expect(host, tensors ? Result<void>() : tensors.error());
  return *std::move(tensors);
}

void Restoration::expect(HostId host, const Result<void>& step) const {
  if (!step) {
    throw std::runtime_error(fmt::format("resume: {}: {}",
                                         (from_.path / host_file_name(host.index())).string(),
                                         step.error().message()));
  }
}

}  // namespace

bool servers_tell_changes(const Strategy& strategy) {
  return strategy.uses_servers() && strategy.sparse() &&
         traits_of(strategy.algorithm).max_lead(strategy) > 0;
}

void restore(const Resumption& from, const Assembly& assembly, TrainingState& state) {
  Restoration(from, assembly, state).run();
}

}  // namespace sluice
