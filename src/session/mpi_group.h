#pragma once

#include <memory>

#include "session/process_group.h"

namespace sluice {

// Whether there is a job to join: by a launcher, or by an MPI that the program has initialised.
bool is_mpi_job();

// All processes of an MPI job: every one is a host. As join_mpi().
Result<std::unique_ptr<ProcessGroup>> join_mpi_group(Warn warn, MpiLife life);

}  // namespace sluice
