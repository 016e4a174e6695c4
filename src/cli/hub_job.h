#pragma once

#include <cstdint>
#include <string>

#include "cli/commands.h"
#include "cli/placement.h"
#include "cli/restarts.h"

namespace sluice::cli {

// What to start without MPI.
struct HubPlan {
  Words command;
  Placement place;
  std::int64_t rejoins = 0;      // how often a rank may be started again in a job that goes on
  std::string checkpoints = {};  // their folder; a new one lets a rank be started as often again
};

// Starts the processes and hosts the hub where they meet. A process that is lost does not end the
// others if they say that they go on without it; else all end soon. It is started again, if it may
// be, and joins them. Signals are passed on.
Ending run_at_hub(const HubPlan& plan, std::int64_t restart);

}  // namespace sluice::cli
