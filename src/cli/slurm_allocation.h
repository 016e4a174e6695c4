#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/placement.h"
#include "drivers/processes/launch.h"

namespace sluice::cli {

// How many tasks each node of an allocation takes, from Slurm's "2(x3),1": 2, 2, 2 and 1.
Result<std::vector<std::size_t>> tasks_by_node(const std::string& counts);

// Where so many processes run in the allocation of Slurm that this process is in, each of them as a
// step of its own; none if it is in no allocation. `names_of` lists the nodes that an expression
// such as "n[1-3]" names, a line each.
Result<std::optional<Placement>> placement_in_slurm(
    std::size_t processes, const Environment& environment,
    const std::function<Result<std::string>(const std::string& expression)>& names_of);

}  // namespace sluice::cli
