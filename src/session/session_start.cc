// How a session goes on with a run, and sees to it that another can go on with this one.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "codecs/size.h"
#include "partition/chunk_map.h"
#include "session/admission.h"
#include "session/batch_shares.h"
#include "session/codec_choice.h"
#include "session/optimizer.h"
#include "session/train_checks.h"
#include "session/training_session.h"

namespace sluice {
namespace {

// Whether the code of every chunk is no longer than its gradient. Sparse ones become shorter.
bool codes_fit(const Job& job) {
  const ChunkMap chunks = make_chunks(job.layers, job.topology.servers(), job.strategy, job.groups);
  return std::ranges::all_of(chunks.all(), [&](const Chunk& chunk) {
    const std::int64_t size = chunk.range.size();
    return coded_size(job.strategy, size, job.first + 1) <= size * kFloatBytes;
  });
}

}  // namespace

Result<void> TrainingSession::find_start() {
  if (group_.joins()) {
    return {};
  }
  auto found =
      find_checkpoint(group_, spec_.checkpoint, topology_, before_choice(spec_.strategy), log_);
  if (!found) {
    return found.error();
  }
  resumption_ = *std::move(found);
  if (!resumption_) {
    return {};
  }
  if (resumption_->former && work_.task) {
    keep_epochs();
  }
  const Iteration end = std::stoll(
      group_.from_leader(std::to_string(work_.extent.iterations), "the length of the run"));
  work_.extent.first = resumption_->first;
  work_.extent.starts = resumption_->starts;
  if (work_.extent.first >= end) {
    return Error(
        fmt::format("resume: {} is after {} iterations, and the run has {}: nothing is left to "
                    "train; ask for more --iterations or --epochs",
                    resumption_->path.string(), work_.extent.first, end));
  }
  return {};
}

void TrainingSession::keep_epochs() {
  const Json& before = resumption_->manifest.measured;
  Extent& extent = work_.extent;
  const std::int64_t joined = extent.joined_batch();
  const Iteration per_epoch = std::max<Iteration>(before.value("per_epoch", extent.per_epoch), 1);
  if (group_.is_leader() && before.value("joined_batch", joined) != joined) {
    log_.info(
        fmt::format("an iteration has up to {} samples, and had {}; an epoch still counts {} "
                    "iterations",
                    joined, before.value("joined_batch", joined), per_epoch));
  }
  extent.count_epochs_of(per_epoch);
  if (spec_.length.iterations == 0) {
    extent.iterations = per_epoch * spec_.length.epochs;
  }
  rule_ = rule_of(spec_.optimizer, extent);
}

void TrainingSession::join(Job& job, Clock& clock) {
  if (!group_.joins()) {
    return;
  }
  resumption_ = await_admission(group_);
  work_.extent.first = resumption_->first;
  work_.extent.starts = resumption_->starts;
  clock = Clock(resumption_->now);
  job = taken_up(std::move(job));
}

Job TrainingSession::taken_up(Job job) const {
  if (resumption_) {
    take_up(job);
  }
  job.strategy.learners_pack = job.strategy.learners_pack && codes_fit(job);
  return job;
}

void TrainingSession::take_up(Job& job) const {
  if (const auto fits = sluice::take_up(*resumption_, job); !fits) {
    throw std::runtime_error(
        fmt::format("resume: {}: {}", resumption_->path.string(), fits.error().message()));
  }
  if (resumption_->former && job.strategy.learners_pack && job.strategy.error_feedback) {
    throw std::runtime_error(
        "resume: with error feedback on devices a run goes on only with as many workers and hosts "
        "as it had: each device keeps what its own codes have lost");
  }
  if (const auto possible = check_collective(job.strategy, topology_, group_); !possible) {
    throw std::runtime_error("resume: " + possible.error().message());
  }
}

std::optional<Kernels> TrainingSession::asked_kernels() const {
  const auto saved =
      resumption_ ? value_of(kKernelsNames, resumption_->manifest.measured.value("kernels", ""))
                  : std::nullopt;
  return saved ? saved : std::get<TaskSpec>(spec_.work).kernels;
}

std::vector<double> TrainingSession::batch_parts() {
  if (resumption_ && !resumption_->former && resumption_->manifest.measured.contains("shares")) {
    return resumption_->manifest.measured["shares"].get<std::vector<double>>();
  }
  return measured_shares(group_, topology_, work_.factory);
}

CodecChoice TrainingSession::chosen_codec(const Job& job, const NetworkFacts& network) const {
  const auto saved = resumption_
                         ? value_of(kCodecNames, resumption_->manifest.measured.value("codec", ""))
                         : std::nullopt;
  if (!saved) {
    return predicted_codec(job, network);
  }
  return {.automatic = !spec_.strategy.codecs.empty(), .codec = *saved, .forecasts = {}};
}

std::unique_ptr<Checkpoints> TrainingSession::make_checkpoints(const Clock& clock) const {
  if (spec_.checkpoint.folder.empty()) {
    return nullptr;
  }
  Json facts{{"kernels", kernels_},
             {"per_epoch", work_.extent.per_epoch},
             {"joined_batch", work_.extent.joined_batch()}};
  if (work_.task && spec_.shares.by_speed) {
    facts["shares"] = work_.task->shares;
  }
  return std::make_unique<Checkpoints>(group_, spec_.checkpoint, std::move(facts), clock, log_);
}

void TrainingSession::add_mechanisms(const Checkpoints* checkpoints, const Trained& trained,
                                     nlohmann::ordered_json& summary) const {
  if (codec_choice_) {
    summary["codec_choice"] = to_json(*codec_choice_);
  }
  if (led_from_) {
    summary["leader"] = {{"rank", group_.rank()}, {"since_iteration", *led_from_}};
  }
  if (resumption_ && !resumption_->joins) {
    summary["resumed"] = {{"from", resumption_->path.string()},
                          {"iteration", resumption_->manifest.iteration}};
    if (const auto& former = resumption_->former) {
      summary["resumed"]["former_workers"] = former->workers();
      summary["resumed"]["former_hosts"] = former->hosts();
      if (spec_.strategy.strategy.uses_servers()) {
        summary["resumed"]["former_servers"] = former->servers();
      }
    }
  }
  for (const EarlierStart& start : spec_.checkpoint.earlier_starts) {
    auto& one = summary["restarts"].emplace_back();
    one = {{"why", start.why}, {"after_s", start.after_s}};
    if (start.checkpoint) {
      one["checkpoint"] = *start.checkpoint;
    }
  }
  if (checkpoints != nullptr) {
    summary["checkpoints"] = checkpoints->summary();
  }
  if (const auto lost = group_.lost(); !lost.empty()) {
    summary["lost_ranks"] = lost;
  }
  const nlohmann::ordered_json history = json_of(trained.history);
  for (const auto& [key, value] : history.items()) {
    if (!value.empty()) {
      summary[key] = value;
    }
  }
}

}  // namespace sluice
