#include "session/former_hosts.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "nodes/reshardable.h"

namespace sluice {
namespace {

// Who shared a machine is not known any more, and nothing in the files depends on it.
std::optional<Topology> topology_from(const Json& hosts) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto count = [&](const char* key, std::int64_t least) {
    const auto found = hosts.is_object() ? hosts.find(key) : hosts.end();
    const std::int64_t value =
        found != hosts.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
    return value >= least && value <= kMost ? static_cast<std::size_t>(value) : kMost + 1;
  };
  const Topology topology(count("worker_hosts", 1), count("workers_per_host", 1),
                          count("hosts_apart", 0), 1, count("servers_per_host", 1));
  return topology.hosts() + topology.workers_per_host() + topology.servers_per_host() <= kMost
             ? std::optional(topology)
             : std::nullopt;
}

// "4 workers (2 per host) with 2 servers apart".
std::string nodes_text(const Topology& topology, bool has_servers) {
  std::string text =
      fmt::format("{} workers ({} per host)", topology.workers(), topology.workers_per_host());
  if (has_servers) {
    text += fmt::format(" with {} servers{}", topology.servers(),
                        topology.servers_apart() ? " apart" : "");
  }
  return text;
}

}  // namespace

std::vector<HostId> all_hosts(const Topology& topology) {
  std::vector<HostId> hosts;
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    hosts.emplace_back(h);
  }
  return hosts;
}

std::string topology_text(const Topology& topology) {
  return fmt::format(
      "{} hosts with {} workers each, {} hosts of servers with {} each, {} workers per machine",
      topology.worker_hosts(), topology.workers_per_host(),
      topology.hosts() - topology.worker_hosts(), topology.servers_per_host(),
      topology.workers_per_machine());
}

Json json_of(const Topology& topology) {
  return {{"worker_hosts", topology.worker_hosts()},
          {"workers_per_host", topology.workers_per_host()},
          {"hosts_apart", topology.hosts() - topology.worker_hosts()},
          {"servers_per_host", topology.servers_per_host()}};
}

Result<std::optional<Topology>> former_hosts(const CheckpointManifest& manifest,
                                             const Topology& topology, Strategy strategy) {
  const std::string before = manifest.measured.value("topology", "");
  if (before == topology_text(topology)) {
    return std::optional<Topology>();
  }
  const std::string others = fmt::format("the run had {}, and now has {}; resume on as many",
                                         before, topology_text(topology));
  strategy.codec =
      value_of(kCodecNames, manifest.measured.value("codec", "")).value_or(strategy.codec);
  if (const auto possible = check_reshardable(strategy); !possible) {
    return Error(fmt::format("{}: {}", others, possible.error().message()));
  }
  const auto former = topology_from(manifest.measured.value("hosts", Json()));
  if (!former) {
    return Error(others + ": the checkpoint does not tell which host had what");
  }
  return former;
}

std::vector<HostId> former_files(const Topology& former, const Strategy& strategy) {
  return strategy.uses_servers() || strategy.error_feedback ? all_hosts(former)
                                                            : std::vector{HostId(0)};
}

std::string taken_up_text(const Topology& former, const Topology& now, const Strategy& strategy) {
  const bool has_servers = strategy.uses_servers();
  return fmt::format(
      "checkpoint of {} taken up by {}: optimiser state re-sharded; sizes, collective and merged "
      "layers chosen anew",
      nodes_text(former, has_servers), nodes_text(now, has_servers));
}

}  // namespace sluice
