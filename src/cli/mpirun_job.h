#pragma once

#include <cstdint>

#include "cli/commands.h"
#include "cli/restarts.h"

namespace sluice::cli {

// Runs this command of mpirun. A signal to this process is passed on, and ends both.
Ending run_mpirun(const Words& words, std::int64_t restart);

}  // namespace sluice::cli
