#pragma once

#include <memory>

#include "session/process_group.h"

namespace sluice {

// Whether there is a job to join: a launcher's, or that of an MPI that the program has initialised.
bool is_launched();

// All processes of a job; each is a host. See join_mpi() and join_hub().
Result<std::unique_ptr<ProcessGroup>> join_launched(Warn warn, Fail fail, MpiLife life);

}  // namespace sluice
