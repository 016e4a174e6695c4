#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"

namespace sluice::cli {

// How often a job may still be started again: so often without a new checkpoint in between.
class RestartCount {
 public:
  // There may be a checkpoint of an earlier job.
  RestartCount(std::int64_t most, std::optional<Iteration> newest) : most_(most), newest_(newest) {}

  // After a failure, with the newest checkpoint that there is: true if the job is to be started
  // again, which counts.
  bool take(std::optional<Iteration> newest);
  std::int64_t taken() const { return taken_; }
  std::int64_t most() const { return most_; }

 private:
  std::int64_t most_;
  std::int64_t taken_ = 0;  // since the newest checkpoint
  std::optional<Iteration> newest_;
};

// The iteration of the newest checkpoint in a folder; none if there is none, or no folder.
std::optional<Iteration> newest_checkpoint(const std::string& folder);

// The folder that the command of a job names for its checkpoints; empty if it names none.
std::string checkpoints_of(const std::vector<std::string>& command);

}  // namespace sluice::cli
