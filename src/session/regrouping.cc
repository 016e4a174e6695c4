#include "session/regrouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/aggregation_groups.h"
#include "nodes/catch_ups.h"
#include "nodes/regrouped_job.h"
#include "partition/fragments.h"
#include "session/donors.h"
#include "state/later_sums.h"

namespace sluice {
namespace {

constexpr const char* kWhoIsLost = "who is lost";
constexpr const char* kLastSums = "the last sums";
constexpr const char* kCaughtUp = "whether all have caught up";
constexpr const char* kParts = "what a sum has made";
const std::string kDone = "done";

using LastSums = std::map<NodeId, std::vector<Iteration>>;

std::vector<HostId> absent_of(const ProcessGroup& group) {
  const std::vector<std::size_t> lost = group.lost();
  return {lost.begin(), lost.end()};
}

Json json_of(const CatchUps& catch_ups) {
  Json all = Json::array();
  for (const CatchUp& one : catch_ups.all) {
    all.push_back({one.worker.index(), one.from.index(), one.chunk.index(), one.sum});
  }
  return {{"all", all}, {"given_up", json_of(catch_ups.given_up)}};
}

CatchUps catch_ups_from(const Json& json) {
  CatchUps catch_ups{.all = {}, .given_up = given_up_from(json.at("given_up"))};
  for (const Json& one : json.at("all")) {
    catch_ups.all.push_back({NodeId(one.at(0).get<std::size_t>()),
                             NodeId(one.at(1).get<std::size_t>()),
                             ChunkId(one.at(2).get<std::size_t>()), one.at(3).get<Iteration>()});
  }
  return catch_ups;
}

// The survivors of one loss, or of several.
class Survivors {
 public:
  explicit Survivors(const RunState& run)
      : run_(run),
        job_(run.assembly.job),
        fragments_(fragments_of(*run.assembly.chunks, job_.strategy.cadence.fragments)),
        next_(std::ranges::max(run.at)) {
    for (const NodeId node : job_.topology.nodes_on(own())) {
      if (job_.topology.is_worker(node)) {
        const auto sums = run.assembly.last_sums(node);
        last_sums_[node] = {sums.begin(), sums.end()};
      }
    }
  }

  // Again and again, until nobody is lost while they do so.
  CatchUps agree() {
    while (true) {
      CatchUps catch_ups = find();
      const bool done = catch_up(catch_ups);
      const auto verdict = [](const std::vector<std::string>& all) -> std::string {
        const auto is_done = [](const std::string& text) { return text.empty() || text == kDone; };
        return std::ranges::all_of(all, is_done) ? kDone : "again";
      };
      if (run_.group.agree(done ? kDone : "not yet", verdict, kCaughtUp) == kDone) {
        give_up_exchanges();
        return catch_ups;
      }
    }
  }

 private:
  HostId own() const { return *run_.group.own_host(); }
  HostId host_of(NodeId worker) const { return job_.topology.host_of(worker); }

  CatchUps find() const {
    Json own = Json::array();
    for (const auto& [worker, sums] : last_sums_) {
      own.push_back({worker.index(), sums});
    }
    const auto catch_ups = [&](const std::vector<std::string>& parts) {
      LastSums all;
      for (const std::string& part : parts) {
        for (const Json& one : part.empty() ? Json::array() : Json::parse(part)) {
          all[NodeId(one.at(0).get<std::size_t>())] = one.at(1).get<std::vector<Iteration>>();
        }
      }
      return json_of(find_catch_ups(all, fragments_, job_.strategy.cadence, next_)).dump();
    };
    return catch_ups_from(Json::parse(run_.group.agree(own.dump(), catch_ups, kLastSums)));
  }

  // Gives and takes; false if somebody was lost who had to give.
  bool catch_up(const CatchUps& catch_ups) {
    for (const CatchUp& one : catch_ups.all) {
      if (host_of(one.from) == own() && host_of(one.worker) != own()) {
        run_.group.send_text(host_of(one.worker).index(), text_of(one));
      }
    }
    bool all = true;
    for (const CatchUp& one : catch_ups.all) {
      if (host_of(one.worker) == own()) {
        const bool is_here = host_of(one.from) == own();
        all = take(one, is_here ? text_of(one)
                                : run_.group.receive_text(host_of(one.from).index(), kParts)) &&
              all;
      }
    }
    return all;
  }

  // Those whose sum nobody has.
  void give_up_exchanges() {
    for (const auto& [worker, sums] : last_sums_) {
      const auto given_up = run_.assembly.sums_given_up(worker);
      for (std::size_t c = 0; c < sums.size(); ++c) {
        if (given_up[c] > sums[c]) {
          run_.state.workspace(worker).give_up_exchange(range_of(ChunkId(c)));
        }
      }
    }
  }

  Range range_of(ChunkId chunk) const { return (*run_.assembly.chunks)[chunk].range; }

  std::string text_of(const CatchUp& one) const {
    std::string text;
    for (const std::span<float> part :
         run_.state.workspace(one.from).in_common(range_of(one.chunk))) {
      text.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
    }
    return text;
  }

  bool take(const CatchUp& one, const std::string& text) {
    if (text.empty()) {
      return false;
    }
    Workspace& workspace = run_.state.workspace(one.worker);
    std::size_t at = 0;
    for (const std::span<float> part : workspace.in_common(range_of(one.chunk))) {
      check(at + part.size_bytes() <= text.size(), "a worker gives all that another one takes");
      std::memcpy(part.data(), text.data() + at, part.size_bytes());
      at += part.size_bytes();
    }
    last_sums_[one.worker].at(one.chunk.index()) = one.sum;
    if (job_.strategy.cadence.under_way_at(next_, fragments_[one.chunk.index()]) != one.sum) {
      workspace.take_over(range_of(one.chunk));
    }
    return true;
  }

  const RunState& run_;
  const Job& job_;
  std::vector<std::int64_t> fragments_;
  Iteration next_;
  LastSums last_sums_;  // of the workers here
};

}  // namespace

bool misses_somebody(const ProcessGroup& group, const Job& job) {
  return absent_of(group) != job.absent;
}

std::optional<Job> regroup(const RunState& run, const Log& log) {
  const Job& job = run.assembly.job;
  const std::string lost = run.group.from_leader(json_of(absent_of(run.group)).dump(), kWhoIsLost);
  const auto absent = hosts_from(Json::parse(lost));
  if (absent == job.absent) {
    return std::nullopt;
  }
  const CatchUps catch_ups = Survivors(run).agree();
  std::ranges::fill(run.at, std::ranges::max(run.at));
  Job next = job_without(absent, catch_ups.given_up, job, run.at.front());
  keep_means(run.state, *run.assembly.chunks, workers_here(run.group, job.topology), job, next);
  if (run.group.is_leader()) {
    log.info(
        fmt::format("from iteration {} on sums are of {} workers; {} chunks were taken from "
                    "workers that had more sums",
                    next.first, AggregationGroups(next).size(), catch_ups.all.size()));
  }
  return next;
}

}  // namespace sluice
