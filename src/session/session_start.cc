// How a session goes on with a run, and sees to it that another can go on with this one.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "codecs/size.h"
#include "partition/chunk_map.h"
#include "session/batch_shares.h"
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
  auto found = find_checkpoint(group_, spec_.checkpoint, topology_, log_);
  if (!found) {
    return found.error();
  }
  resumption_ = *std::move(found);
  if (!resumption_) {
    return {};
  }
  const Iteration end = std::stoll(
      group_.from_leader(std::to_string(work_.extent.iterations), "the length of the run"));
  work_.extent.first = resumption_->manifest.iteration;
  if (work_.extent.first >= end) {
    return Error(
        fmt::format("resume: {} is after {} iterations, and the run has {}: nothing is left to "
                    "train; ask for more --iterations or --epochs",
                    resumption_->path.string(), work_.extent.first, end));
  }
  return {};
}

Job TrainingSession::taken_up(Job job) const {
  if (resumption_) {
    take_up(job);
  }
  job.strategy.learners_pack = job.strategy.learners_pack && codes_fit(job);
  return job;
}

void TrainingSession::take_up(Job& job) const {
  if (const auto fits = adopt_measured(resumption_->manifest.measured, job); !fits) {
    throw std::runtime_error(
        fmt::format("resume: {}: {}", resumption_->path.string(), fits.error().message()));
  }
  if (const auto possible = check_collective(job.strategy, topology_, group_); !possible) {
    throw std::runtime_error("resume: " + possible.error().message());
  }
  job.first = resumption_->manifest.iteration;
}

std::optional<Kernels> TrainingSession::asked_kernels() const {
  const auto saved =
      resumption_ ? value_of(kKernelsNames, resumption_->manifest.measured.value("kernels", ""))
                  : std::nullopt;
  return saved ? saved : std::get<TaskSpec>(spec_.work).kernels;
}

std::vector<double> TrainingSession::batch_parts() {
  if (resumption_ && resumption_->manifest.measured.contains("shares")) {
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
  Json facts{{"kernels", kernels_}};
  if (work_.task && spec_.shares.by_speed) {
    facts["shares"] = work_.task->shares;
  }
  return std::make_unique<Checkpoints>(group_, spec_.checkpoint, std::move(facts), clock, log_);
}

void TrainingSession::add_mechanisms(const Checkpoints* checkpoints,
                                     nlohmann::ordered_json& summary) const {
  if (codec_choice_) {
    summary["codec_choice"] = to_json(*codec_choice_);
  }
  if (resumption_) {
    summary["resumed"] = {{"from", resumption_->path.string()},
                          {"iteration", resumption_->manifest.iteration}};
  }
  if (checkpoints != nullptr) {
    summary["checkpoints"] = checkpoints->summary();
  }
  if (const auto lost = group_.lost(); !lost.empty()) {
    summary["lost_ranks"] = lost;
  }
}

}  // namespace sluice
