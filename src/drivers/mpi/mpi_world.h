#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/process_world.h"
#include "drivers/realtime/warn.h"

namespace sluice {

// The largest block of a text, since MPI counts in 32 bits.
inline constexpr std::size_t kTextBlockBytes = std::size_t{1} << 30U;

// Call this only if find_launch() or program_runs_mpi() finds a job to join, and for one world at a
// time. Fails in a build without MPI, if MPI sees other processes than the launcher started, and if
// the program's own use of MPI is incompatible. Texts are sent in blocks of `block_bytes`, the same
// for all processes.
Result<std::unique_ptr<ProcessWorld>> join_mpi(Warn warn, Fail fail, MpiLife life = MpiLife::kWorld,
                                               std::size_t block_bytes = kTextBlockBytes);

// Whether MPI has already been initialised in this process, for several processes.
bool program_runs_mpi();

// What `sluice doctor` reports.
struct MpiInfo {
  std::string library;  // empty: none was built in
  std::string advice;   // how to get what is missing; empty if nothing is
};
MpiInfo mpi_info();

}  // namespace sluice
