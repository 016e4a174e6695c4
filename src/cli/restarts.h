#pragma once

#include <cstdint>
#include <string>

#include "cli/commands.h"

namespace sluice::cli {

// The environment variable that tells the processes of a job how often it was started before.
inline constexpr const char* kRestartVariable = "SLUICE_RESTART";

// Runs the program, and again after each failure that a restart may cure. A signal to this process
// is passed on, and ends both. Returns the exit code of the last run.
int run_with_restarts(const Words& words, std::int64_t most, const std::string& checkpoints);

}  // namespace sluice::cli
