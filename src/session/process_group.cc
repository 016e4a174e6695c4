#include "session/process_group.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "drivers/mpi/launch.h"
#include "model/alike.h"

namespace sluice {
namespace {

std::string name_of(std::size_t rank, const Json& member) {
  return fmt::format("rank {} on {}", rank, member.at("host").get<std::string>());
}

// What keeps this member from going on with the first; empty if nothing does.
std::string fault_of(const Json& member, const Json& first) {
  if (const std::string error = member.at("error"); !error.empty()) {
    return error;
  }
  if (member.at("version") != first.at("version")) {
    return fmt::format("is sluice {}, but rank 0 is sluice {}; install the same on all hosts",
                       member.at("version").get<std::string>(),
                       first.at("version").get<std::string>());
  }
  return difference(member.at("settings"), first.at("settings"));
}

// One sentence for all; empty if nothing keeps them from going on.
std::string verdict_on(const std::vector<Json>& members) {
  std::set<std::string> faults;
  std::string named;
  std::size_t faulty = 0;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (const std::string fault = fault_of(members[r], members[0]); !fault.empty()) {
      faults.insert(fault);
      named += (named.empty() ? "" : "; ") + name_of(r, members[r]) + ": " + fault;
      ++faulty;
    }
  }
  return faulty == members.size() && faults.size() == 1 ? *faults.begin() : named;
}

std::vector<std::string> hosts_of(const std::vector<Json>& members) {
  std::vector<std::string> hosts;
  for (const Json& member : members) {
    hosts.push_back(member.at("host"));
  }
  return hosts;
}

}  // namespace

Result<ProcessGroup> ProcessGroup::join(Warn warn) {
  ProcessGroup group;
  group.warn_ = std::move(warn);
  if (find_launch()) {
    auto world = join_mpi(group.warn_);
    if (!world) {
      return world.error();
    }
    group.world_ = *std::move(world);
  }
  return group;
}

Result<void> ProcessGroup::dictate_workers(cli::Settings& settings) const {
  if (!is_launched()) {
    return {};
  }
  const auto size = static_cast<std::int64_t>(world_->size());
  const std::int64_t each = settings.integer("workers-per-host");
  return settings.dictate("workers", size * each,
                          fmt::format("{} processes were started with {} worker{} each; leave "
                                      "--workers out, or start as many as it needs",
                                      size, each, each == 1 ? "" : "s"));
}

Result<std::size_t> ProcessGroup::check_in(const cli::Settings& settings,
                                           const Result<void>& ready) const {
  if (!is_launched()) {
    return ready ? Result<std::size_t>(1) : ready.error();
  }
  const Json self{{"host", host_name()},
                  {"version", SLUICE_VERSION},
                  {"settings", settings.values()},
                  {"error", ready ? "" : ready.error().message()}};
  std::vector<Json> members;
  for (const std::string& text : to_first(self.dump(), "word that all is ready")) {
    members.push_back(Json::parse(text));
  }
  Json answer;
  if (is_leader()) {
    answer = {{"verdict", verdict_on(members)}};
  }
  answer = Json::parse(from_first(answer.dump(), "leave to begin"));
  if (const std::string verdict = answer.at("verdict"); !verdict.empty()) {
    return Error(verdict);
  }
  if (is_leader()) {
    const std::vector<std::string> hosts = hosts_of(members);
    spdlog::info("{} processes on {}", hosts.size(),
                 fmt::join(std::set<std::string>(hosts.begin(), hosts.end()), ", "));
  }
  world_->meet();
  return processes_per_machine(world_->machines());
}

std::string ProcessGroup::from_first(const std::string& text, const std::string& what) const {
  return is_launched() ? world_->broadcast(text, what) : text;
}

std::vector<std::string> ProcessGroup::to_first(const std::string& text,
                                                const std::string& what) const {
  return is_launched() ? world_->gather(text, what) : std::vector{text};
}

}  // namespace sluice
