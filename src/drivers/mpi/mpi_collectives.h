#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "drivers/processes/numbers.h"

namespace sluice {

// Returns when `done` is true; calls it now and then.
using Waiting = std::function<void(const std::function<bool()>& done)>;

// See ProcessWorld. They never block in MPI.
void all_reduce(MPI_Comm comm, const Numbers& numbers, Reduction reduction, const Waiting& wait);
void broadcast_from(MPI_Comm comm, std::size_t root, std::span<std::byte> bytes,
                    const Waiting& wait);
std::vector<std::string> all_gather(MPI_Comm comm, const std::string& own, const Waiting& wait);

}  // namespace sluice
