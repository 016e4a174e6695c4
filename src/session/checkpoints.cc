#include "session/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <utility>

#include "session/evaluated_model.h"
#include "session/host_copies.h"
#include "session/resumption.h"

namespace sluice {

Iteration mean_of(const std::vector<Iteration>& at) {
  return std::accumulate(at.begin(), at.end(), Iteration{0}) / static_cast<Iteration>(at.size());
}

namespace {

const std::string kHasFiles = "its files are there";

// Of which parameters the model is that such a run has trained, for those who know neither its
// algorithm nor its chunks.
Json result_of(const Assembly& assembly) {
  const EvaluatedModel result = evaluated_model(assembly.job.strategy);
  if (result == EvaluatedModel::kMean &&
      traits_of(assembly.job.strategy.algorithm).sends != Sends::kOuterGradients) {
    return {{"means", "parameters"}};
  }
  if (result != EvaluatedModel::kServers) {
    return Json::object();
  }
  Json shards = std::vector(assembly.job.topology.servers(), Json::array());
  for (const Chunk& chunk : assembly.chunks->all()) {
    shards[chunk.server].push_back({chunk.range.begin, chunk.range.end});
  }
  return {{"shards", shards}};
}

}  // namespace

Checkpoints::Checkpoints(ProcessGroup& group, const CheckpointSpec& spec, Json facts,
                         const Clock& clock, const Log& log)
    : group_(group), spec_(spec), facts_(std::move(facts)), clock_(clock), log_(log) {
  if (group.is_leader()) {
    CheckpointFolder(spec.folder).remove_unfinished();
    std::random_device entropy;
    token_ = fmt::format("{:08x}", entropy());
  }
  token_ = group.from_leader(token_, "the name of the run's checkpoints");
  copied_at_ = clock.now();
}

std::optional<Iteration> Checkpoints::next_after(Iteration at) const {
  return spec_.every > 0 ? std::optional((at / spec_.every + 1) * spec_.every) : std::nullopt;
}

bool Checkpoints::is_due() const {
  return group_.is_leader() && spec_.interval > Duration(0) &&
         clock_.now() - copied_at_.load() >= spec_.interval;
}

std::string Checkpoints::path_of(Iteration iteration) const {
  return CheckpointFolder(spec_.folder).of(iteration).string();
}

CheckpointPart Checkpoints::part_of(const Assembly& assembly, TrainingState& state,
                                    const std::vector<Iteration>& at) {
  const Job& job = assembly.job;
  CheckpointPart part{.folder = CheckpointFolder(spec_.folder),
                      .token = token_,
                      .iteration = mean_of(at),
                      .shards = {},
                      .hosts = {},
                      .keep = spec_.keep};
  std::vector<CheckpointPart::Shard> earlier = std::exchange(earlier_, {});
  const std::vector<HostId> hosts = hosts_here(group_, job.topology);
  earlier.resize(hosts.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    part.shards.push_back(
        {hosts[h].index(), copies_of(assembly, state, hosts[h], std::move(earlier[h].tensors))});
  }
  if (group_.is_leader()) {
    const std::vector<std::size_t> lost = group_.lost();
    for (std::size_t host = 0; host < job.topology.hosts(); ++host) {
      if (std::ranges::find(lost, host) == lost.end()) {
        part.hosts.push_back(host);
      }
    }
    Json measured = facts_;
    measured.update(measured_of(job));
    measured.update(result_of(assembly));
    if (std::ranges::adjacent_find(at, std::not_equal_to<>()) != at.end()) {
      measured["starts"] = at;
    }
    part.manifest = CheckpointManifest{.iteration = part.iteration,
                                       .version = SLUICE_VERSION,
                                       .settings = spec_.settings,
                                       .measured = std::move(measured)};
  }
  return part;
}

void Checkpoints::take(const Assembly& assembly, TrainingState& state,
                       const std::vector<Iteration>& at) {
  const Time begin = clock_.now();
  if (last_ != mean_of(at)) {
    settle();
    last_ = mean_of(at);
    const auto warn = [this, path = path_of(*last_)](const Error& error) {
      log_.warn(fmt::format("checkpoint {} was not written: {}", path, error.message()));
    };
    writing_ = std::make_unique<CheckpointWriter>(part_of(assembly, state, at), clock_, warn);
  }
  copied_at_ = clock_.now();
  held_ += copied_at_.load() - begin;
}

void Checkpoints::settle() {
  if (!writing_) {
    return;
  }
  Result<void> result;
  group_.attend([&] { result = writing_->await_files(); });
  const Json end = Json::parse(group_.agree(
      result ? kHasFiles : result.error().message(),
      [this](const std::vector<std::string>& said) { return end_of(said).dump(); },
      "the files of a checkpoint"));
  written_ += end.at("written") ? 1 : 0;
  failed_ += end.at("written") ? 0 : 1;
  bytes_ += end.at("bytes").get<std::uint64_t>();
  writing_took_ += Duration(end.at("took_ps").get<Duration::rep>());
  if (result) {
    static_cast<void>(writing_->await_end());
    earlier_ = writing_->take_shards();
  }
  writing_.reset();
}

// Whoever could not do its part has said so to the user. What a lost process says is empty.
Json Checkpoints::end_of(const std::vector<std::string>& said) {
  const std::string path = path_of(writing_->iteration());
  bool written = std::ranges::all_of(
      said, [](const std::string& one) { return one.empty() || one == kHasFiles; });
  if (written && writing_->publishes()) {
    const bool all = std::ranges::none_of(writing_->hosts(), [&](std::size_t host) {
      return host < said.size() && said[host].empty();
    });
    group_.attend([&] { written = static_cast<bool>(writing_->await_end(all)); });
  } else if (written) {
    written = std::filesystem::exists(path);
    if (!written) {
      log_.warn(fmt::format("checkpoint {} was not written: who led the run was lost", path));
    }
  }
  if (!written) {
    writing_->give_up();
    return {{"written", false}, {"bytes", 0}, {"took_ps", 0}};
  }
  log_.info(fmt::format("checkpoint in {}: {:.1f} MB, written in {:.2f} s", path,
                        static_cast<double>(writing_->bytes()) / 1e6,
                        to_seconds(writing_->took())));
  return {{"written", true}, {"bytes", writing_->bytes()}, {"took_ps", writing_->took().count()}};
}

void Checkpoints::finish() { settle(); }

void Checkpoints::regroup() {
  settle();
  last_.reset();
}

nlohmann::ordered_json Checkpoints::summary() const {
  return {{"folder", spec_.folder},
          {"written", written_},
          {"failed", failed_},
          {"bytes", bytes_},
          {"background_s", to_seconds(writing_took_)},
          {"held_s", to_seconds(held_)}};
}

}  // namespace sluice
