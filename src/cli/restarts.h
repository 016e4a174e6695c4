#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sluice::cli {

// The environment variable that tells the processes of a job how often it was started before.
inline constexpr const char* kRestartVariable = "SLUICE_RESTART";
// And the one that tells them how those starts have ended: a list in JSON, see EarlierStart.
inline constexpr const char* kEarlierStartsVariable = "SLUICE_EARLIER_STARTS";
// The exit code if there is no such program.
inline constexpr int kNotFound = 127;

// How a job has ended.
struct Ending {
  int code = 0;
  int signal = 0;        // that this process got meanwhile; 0: none
  std::string why = {};  // who failed first, and how; empty: that is not known
};

// Runs a job that was started so often before.
using RunJob = std::function<Ending(std::int64_t restart)>;

// Runs a job, and again after each failure that a restart may cure. Returns the exit code of the
// last run.
int run_with_restarts(const RunJob& run, std::int64_t most, const std::string& checkpoints);

}  // namespace sluice::cli
