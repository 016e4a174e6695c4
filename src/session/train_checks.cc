#include "session/train_checks.h"

#include <fmt/format.h>

#include "nodes/presets.h"
#include "nodes/validate_factored.h"
#include "nodes/validate_update.h"
#include "session/batch_shares.h"
#include "session/codec_choice.h"
#include "session/optimizer.h"
#include "session/workload.h"

namespace sluice {
namespace {

// Threads can be any hosts; with several processes, each is a host.
Result<void> check_hosts(const HostsSpec& hosts, const Strategy& strategy,
                         const ProcessGroup& group) {
  if (hosts.servers != 0 && !strategy.uses_servers()) {
    return Error(fmt::format("servers: exchange {} has no servers; leave it out",
                             name_of(kExchangeNames, strategy.exchange)));
  }
  if (hosts.servers % hosts.servers_per_host != 0) {
    return Error(
        fmt::format("servers-per-host: {} servers do not fill hosts of {}; use a divisor of {}",
                    hosts.servers, hosts.servers_per_host, hosts.servers));
  }
  if (hosts.workers % hosts.workers_per_host != 0) {
    return Error(
        fmt::format("workers-per-host: {} workers do not fill hosts of {}; use a divisor of {}",
                    hosts.workers, hosts.workers_per_host, hosts.workers));
  }
  const std::size_t with_workers = hosts.workers / hosts.workers_per_host;
  if (group.own_host() && with_workers + hosts.hosts_apart() != group.size()) {
    return Error(fmt::format(
        "workers: {} processes, {} of them for servers, with {} workers each have not {} workers",
        group.size(), hosts.hosts_apart(), hosts.workers_per_host, hosts.workers));
  }
  return {};
}

Result<void> check_checkpoints(const CheckpointSpec& spec, const ProcessGroup& group) {
  if (!spec.is_on()) {
    return {};
  }
  if (group.virtual_now()) {
    return Error("checkpoint: a simulated run has none; leave it out");
  }
  if (spec.resume == "auto" && spec.folder.empty()) {
    return Error("resume: auto looks in the folder of --checkpoint, which is missing");
  }
  return {};
}

// A profile that cannot be read is complained of where it is used.
Result<void> check_profile(const TrainSpec& spec, const Strategy& strategy) {
  const auto* replayed = std::get_if<ProfileSpec>(&spec.work);
  if (replayed == nullptr || !strategy.factored()) {
    return {};
  }
  const auto profile = scaled_profile(*replayed);
  return profile ? check_matrices(strategy, profile->layout()) : Result<void>();
}

}  // namespace

Topology topology_of(const HostsSpec& hosts, std::size_t hosts_per_machine) {
  return {hosts.workers / hosts.workers_per_host, hosts.workers_per_host, hosts.hosts_apart(),
          hosts_per_machine, hosts.servers_per_host};
}

Result<void> check_collective(const Strategy& strategy, const Topology& topology,
                              const ProcessGroup& group) {
  const auto possible = group.own_host() || !strategy.driver_sums()
                            ? check_driver_sums(strategy, topology)
                            : Error("there is only one process; start with mpirun");
  if (possible) {
    return {};
  }
  const bool by_mpi = strategy.collective == Collective::kNative;
  return Error(
      fmt::format("collective: {}: {}; or use another collective",
                  by_mpi ? "native is MPI_Allreduce" : "shared-memory is a sum in shared memory",
                  possible.error().message()));
}

Result<void> check_spec(const TrainSpec& spec, const ProcessGroup& group) {
  const Strategy strategy = before_choice(spec.strategy);
  if (auto valid = validate(strategy); !valid) {
    return valid;
  }
  if (auto valid = validate(rule_of(spec.optimizer, Extent{}), strategy); !valid) {
    return valid;
  }
  if (auto valid = check_hosts(spec.hosts, strategy, group); !valid) {
    return valid;
  }
  if (auto valid = check_checkpoints(spec.checkpoint, group); !valid) {
    return valid;
  }
  if (auto valid = check_shares(spec.shares, strategy, spec.hosts.workers); !valid) {
    return valid;
  }
  if (auto valid = check_profile(spec, strategy); !valid) {
    return valid;
  }
  // Which processes share a machine is not known yet.
  return check_collective(strategy, topology_of(spec.hosts, spec.hosts.workers), group);
}

}  // namespace sluice
