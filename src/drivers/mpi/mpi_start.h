#pragma once

#include <functional>

#include "base/result.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice {

// The state in which this process found MPI.
enum class MpiStart {
  kHere,    // MPI was started now
  kBefore,  // it was running: the program had started it, or Sluice for an earlier world
};

// Calls `tune` and starts MPI, unless it is running. Fails if this thread may not use it, or if it
// has been finalised. With MpiLife::kProcess, MPI that was started here is finalised when the
// process exits.
Result<MpiStart> start_mpi(MpiLife life, const std::function<void()>& tune);

}  // namespace sluice
