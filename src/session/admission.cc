#include "session/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/check.h"
#include "model/aggregation_groups.h"
#include "nodes/host.h"
#include "nodes/regrouped_job.h"
#include "session/donors.h"
#include "session/host_copies.h"
#include "state/later_sums.h"

namespace sluice {
namespace {

constexpr const char* kInvitation = "what who joins begins with";
constexpr const char* kHostState = "the state of a host";

Donors donors_of(const std::vector<std::size_t>& joiners, const ProcessGroup& group,
                 const Topology& topology) {
  const std::vector<std::size_t> lost = group.lost();
  const auto has_state = [&](HostId host) {
    return std::ranges::find(joiners, host.index()) == joiners.end() &&
           std::ranges::find(lost, host.index()) == lost.end();
  };
  return donors_for({joiners.begin(), joiners.end()}, topology, has_state);
}

Iteration slowest_on(HostId host, const Topology& topology, const std::vector<Iteration>& at) {
  const auto first =
      at.begin() + static_cast<std::ptrdiff_t>(host.index() * topology.workers_per_host());
  return *std::min_element(first, first + static_cast<std::ptrdiff_t>(topology.workers_per_host()));
}

void begin_at(Iteration iteration, HostId host, const Topology& topology,
              std::vector<Iteration>& at) {
  for (std::size_t w = 0; w < topology.workers_per_host(); ++w) {
    at.at(host.index() * topology.workers_per_host() + w) = iteration;
  }
}

std::vector<PeerJoined> joined_from(const Donors& donors, const Topology& topology,
                                    const std::vector<Iteration>& at) {
  std::vector<PeerJoined> joined;
  for (const auto& [joiner, donor] : donors) {
    joined.push_back({joiner, slowest_on(joiner, topology, at)});
  }
  return joined;
}

std::string file_of(const RunState& run, HostId host) {
  const std::vector<TensorCopy> copies = copies_of(run.assembly, run.state, host);
  std::vector<StoredTensor> views;
  std::ranges::transform(copies, std::back_inserter(views), &TensorCopy::view);
  auto file = safetensors_of(std::move(views));
  check(static_cast<bool>(file), "what a host remembers has names of its own");
  return *std::move(file);
}

// If this process has what others take, sends it to them; its weight is theirs, too.
void give(const RunState& run, HostId own, const Donors& donors) {
  const auto takes = [&](const auto& pair) { return pair.second == own; };
  const auto takers = std::ranges::count_if(donors, takes);
  if (takers == 0) {
    return;
  }
  const std::string file = file_of(run, own);
  for (const auto& [joiner, donor] : donors) {
    if (donor == own) {
      run.group.send_text(joiner.index(), file);
    }
  }
  const Topology& topology = run.assembly.job.topology;
  for (std::size_t w = 0; w < topology.workers_per_host(); ++w) {
    const NodeId worker = topology.worker(own.index() * topology.workers_per_host() + w);
    for (double& weight : run.assembly.weights(worker)) {
      weight /= static_cast<double>(1 + takers);
    }
  }
}

// A worker that joins has been told by the servers here what its donor has.
void treat_alike(const RunState& run, HostId own, const Donors& donors) {
  const Topology& topology = run.assembly.job.topology;
  for (const NodeId server : topology.nodes_on(own)) {
    if (topology.is_worker(server)) {
      continue;
    }
    for (const auto& [joiner, donor] : donors) {
      for (std::size_t w = 0; w < topology.workers_per_host(); ++w) {
        run.state.workspace(server).treat_alike(topology.nodes_on(joiner)[w],
                                                topology.nodes_on(donor)[w]);
      }
    }
  }
}

}  // namespace

bool takes_joiners(const Strategy& strategy, const Topology& topology) {
  return topology.worker_hosts() > 1 &&
         why_it_ends(strategy, topology, strategy.cadence.synchronous, HostId(1)).empty();
}

std::vector<PeerJoined> let_in(const RunState& run, const Log& log) {
  const Topology& topology = run.assembly.job.topology;
  const std::vector<std::size_t> ranks = run.group.let_in();
  if (ranks.empty()) {
    return {};
  }
  const auto invite = [&](const std::vector<std::string>& /*texts*/) {
    const Donors donors = donors_of(ranks, run.group, topology);
    std::vector<HostId> absent = run.assembly.job.absent;
    std::erase_if(absent, [&](HostId host) { return donors.contains(host); });
    for (const auto& [joiner, donor] : donors) {
      const Iteration start = slowest_on(donor, topology, run.at);
      begin_at(start, joiner, topology, run.at);
      log.info(fmt::format("rank {} is back: it goes on with what rank {} has, from iteration {}",
                           joiner.index(), donor.index(), start));
    }
    const std::vector<PeerJoined> joined = joined_from(donors, topology, run.at);
    History history = run.history;
    add_losses(run.group, run.now, history);
    history.joined.insert(history.joined.end(), ranks.begin(), ranks.end());
    if (run.assembly.job.strategy.sums_can_be_given_up()) {
      const Job next = job_with(joined, run.assembly.job, std::ranges::min(run.at));
      history.regrouped.push_back({next.first, AggregationGroups(next).size()});
    }
    return Json{{"measured", measured_of(run.assembly.job)},
                {"starts", run.at},
                {"absent", json_of(absent)},
                {"donors", json_of(donors)},
                {"evaluated", run.evaluated},
                {"now_ps", run.now.count()},
                {"history", json_of(history)}}
        .dump();
  };
  const Json invitation = Json::parse(run.group.agree("", invite, kInvitation));
  run.at = invitation.at("starts").get<std::vector<Iteration>>();
  const Donors donors = donors_from(invitation.at("donors"));
  const std::vector<PeerJoined> joined = joined_from(donors, topology, run.at);
  if (const Job& job = run.assembly.job; job.strategy.sums_can_be_given_up()) {
    keep_means(run.state, *run.assembly.chunks, workers_here(run.group, topology), job,
               job_with(joined, job, std::ranges::min(run.at)));
  }
  give(run, *run.group.own_host(), donors);
  treat_alike(run, *run.group.own_host(), donors);
  return joined;
}

Resumption await_admission(ProcessGroup& group) {
  group.await_admission();
  const auto cannot = [](const std::vector<std::string>& /*texts*/) -> std::string {
    throw std::runtime_error(
        "who led the run was lost before it told what this process begins with");
  };
  const Json invitation = Json::parse(group.agree("", cannot, kInvitation));
  const HostId own = *group.own_host();
  Resumption from{.path = "the run that it joins",
                  .manifest = {},
                  .starts = invitation.at("starts"),
                  .donors = donors_from(invitation.at("donors")),
                  .evaluated = invitation.at("evaluated"),
                  .now = Time(invitation.at("now_ps").get<Time::rep>()),
                  .joins = true,
                  .history = history_from(invitation.at("history"))};
  from.first = std::ranges::min(from.starts);
  from.absent = hosts_from(invitation.at("absent"));
  from.manifest.measured = invitation.at("measured");
  const HostId donor = from.donors.at(own);
  std::string file = group.receive_text(donor.index(), kHostState);
  if (file.empty()) {
    throw std::runtime_error(
        fmt::format("rank {} was lost before it gave its state away", donor.index()));
  }
  from.files.emplace_back(own, std::move(file));
  return from;
}

}  // namespace sluice
