#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::cli {

// The hosts of so many processes, by rank, according to the text of a file of mpirun: a host a
// line, with "slots=N" or ":N" for N processes; each host is filled before the next.
Result<std::vector<std::string>> hosts_in(const std::string& text, std::size_t processes);

}  // namespace sluice::cli
