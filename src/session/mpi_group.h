#pragma once

#include <memory>

#include "session/process_group.h"

namespace sluice {

// Whether there is a job to join: a launcher's, or that of an MPI that the program has initialised.
bool is_mpi_job();

// All processes of an MPI job; each is a host. See join_mpi().
Result<std::unique_ptr<ProcessGroup>> join_mpi_group(Warn warn, Fail fail, MpiLife life);

}  // namespace sluice
