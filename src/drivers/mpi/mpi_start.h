#pragma once

#include <functional>

#include "base/result.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice {

// What this process found.
enum class MpiStart {
  kHere,    // MPI was started now
  kBefore,  // it ran already: the program had started it, or Sluice for an earlier world
};

// Starts MPI, right after `tune`, unless it runs. Fails if this thread may not use it, or
// if it has been finalised. With MpiLife::kProcess, MPI that was started here is finalised when the
// process exits.
Result<MpiStart> start_mpi(MpiLife life, const std::function<void()>& tune);

}  // namespace sluice
