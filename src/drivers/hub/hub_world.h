#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "drivers/hub/hub.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/process_world.h"
#include "drivers/realtime/warn.h"

namespace sluice {

// What a process has to know to join a run.
struct HubJob {
  HubAddress hub;
  std::size_t rank = 0;
  std::size_t size = 1;
  bool joins = false;  // the run goes on without this rank
};

// None: this process is none of several that sluice launch started without MPI. Where the hub is
// must be said as address:port; else nobody can be reached there.
std::optional<HubJob> find_hub_job(const Environment& environment);
std::optional<HubJob> find_hub_job();

// The processes of a run that `sluice launch` started without MPI. They meet at its hub, and only
// TCP connections of their own carry the messages of training. A process that dies or falls silent
// does not end the others: see ProcessWorld::outlive().
Result<std::unique_ptr<ProcessWorld>> join_hub(const HubJob& job, Warn warn, Fail fail);

}  // namespace sluice
