#include "session/process_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "formats/document.h"
#include "session/dedicated_servers.h"
#include "session/launched_group.h"
#include "session/thread_group.h"

namespace sluice {
namespace {

std::string rank_name(std::size_t rank, const Json& process) {
  return fmt::format("rank {} on {}", rank, process.at("host").get<std::string>());
}

// Why this process cannot run with the leader; empty if it can.
std::string fault_of(const Json& process, const Json& leader) {
  if (const std::string error = process.at("error"); !error.empty()) {
    return error;
  }
  if (process.at("version") != leader.at("version")) {
    return fmt::format(
        "is sluice {}, but rank 0 is sluice {}; install the same version on all hosts",
        process.at("version").get<std::string>(), leader.at("version").get<std::string>());
  }
  for (const auto& [key, value] : leader.at("settings").get<Agreement>()) {
    if (const std::string other = process.at("settings").value(key, "none"); other != value) {
      return fmt::format("has {} = {}, but rank 0 has {}; start all with the same settings", key,
                         other, value);
    }
  }
  return "";
}

// One sentence for all processes; empty if all can run.
std::string verdict_on(const std::vector<Json>& processes) {
  std::set<std::string> faults;
  std::string named;
  std::size_t faulty = 0;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    if (const std::string fault = fault_of(processes[r], processes[0]); !fault.empty()) {
      faults.insert(fault);
      named += (named.empty() ? "" : "; ") + rank_name(r, processes[r]) + ": " + fault;
      ++faulty;
    }
  }
  return faulty == processes.size() && faults.size() == 1 ? *faults.begin() : named;
}

std::vector<std::string> hosts_of(const std::vector<Json>& processes) {
  std::vector<std::string> hosts;
  for (const Json& process : processes) {
    hosts.push_back(process.at("host"));
  }
  return hosts;
}

// The parameters that the servers of this process begin with; empty if it has workers.
ZeroedBuffer shards_by_leader(ProcessGroup& group, const Assembly& assembly,
                              std::span<const std::unique_ptr<Learner>> learners) {
  std::vector<std::string> texts;
  if (group.is_leader()) {
    texts.resize(group.size());
    for (std::size_t r = assembly.job.topology.worker_hosts(); r < texts.size(); ++r) {
      texts[r] = shards_of(assembly, HostId(r), learners.front()->parameters());
    }
  }
  const std::string own = group.scatter(texts, "the first parameters");
  return learners.empty() ? shards_from(own, assembly, *group.own_host()) : ZeroedBuffer(0);
}

}  // namespace

Result<std::unique_ptr<ProcessGroup>> join_processes(Warn warn, Fail fail, MpiLife life) {
  return is_launched() ? join_launched(std::move(warn), std::move(fail), life)
                       : make_thread_group();
}

bool has_dedicated_servers(const ProcessGroup& group, const Topology& topology) {
  return group.own_host() && topology.servers_apart();
}

TrainingState state_of(ProcessGroup& group, const Assembly& assembly,
                       std::span<const std::unique_ptr<Learner>> learners, const UpdateRule& rule) {
  const Job& job = assembly.job;
  ZeroedBuffer shards(0);
  if (has_dedicated_servers(group, job.topology) && !group.joins()) {
    shards = shards_by_leader(group, assembly, learners);
  }
  const TrainingState::FirstModel first{
      job.layers, learners.empty() ? shards.values() : learners.front()->parameters()};
  return {job.topology, learners, first, *assembly.chunks, job.strategy, rule, group.own_host()};
}

std::vector<std::size_t> workers_here(const ProcessGroup& group, const Topology& topology) {
  std::vector<std::size_t> ranks;
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    const HostId host = topology.host_of(topology.worker(w));
    if (group.own_host().value_or(host) == host) {
      ranks.push_back(w);
    }
  }
  return ranks;
}

std::string text_of(const Roster& roster) {
  return fmt::format(
      "{} processes on {}", roster.hosts.size(),
      fmt::join(std::set<std::string>(roster.hosts.begin(), roster.hosts.end()), ", "));
}

Result<Roster> check_in(ProcessGroup& group, const Agreement& own, const Result<void>& ready) {
  const Json self{{"host", host_name()},
                  {"version", SLUICE_VERSION},
                  {"settings", own},
                  {"error", ready ? "" : ready.error().message()}};
  std::vector<Json> processes;
  for (const std::string& text : group.to_leader(self.dump(), "the check-in")) {
    processes.push_back(Json::parse(text));
  }
  Json answer;
  if (group.is_leader()) {
    answer = {{"verdict", verdict_on(processes)}, {"hosts", hosts_of(processes)}};
  }
  answer = Json::parse(group.from_leader(answer.dump(), "the result of the check-in"));
  if (const std::string verdict = answer.at("verdict"); !verdict.empty()) {
    return Error(verdict);
  }
  group.meet();
  Roster roster{.hosts = answer.at("hosts"), .machines = group.machines()};
  roster.per_machine = processes_per_machine(roster.machines);
  return roster;
}

std::size_t per_machine(const Roster& roster, std::size_t with_workers) {
  if (roster.per_machine == roster.machines.size()) {
    return roster.per_machine;
  }
  const auto begin = roster.machines.begin();
  return processes_per_machine({begin, begin + static_cast<std::ptrdiff_t>(with_workers)});
}

}  // namespace sluice
