#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "cli/sweep_cells.h"
#include "session/sweep.h"

// --times-at: what workers that wait for each other learn does not depend on how fast the network
// is. So each training of a sweep runs once, and simulations without numbers tell how long it takes
// on other networks.
namespace sluice::cli {

// The sweep, and each of its trainings with all values of --times-at, the first of which it trains
// with. Without --times-at the sweep itself. An error names the flag.
Result<Sweep> with_times(const Settings& settings, const Sweep& trainings);

// Refuses trainings whose results depend on time. `cells` are those of all of them.
Result<void> check_times(const Sweep& all, const std::vector<SweepCell>& cells);

// The summaries of all cells, from those of the trainings. The times of a cell that did not train
// are so many iterations of a simulation in its steady state.
std::vector<OrderedJson> timed(const Sweep& all, const std::vector<SweepCell>& cells,
                               const std::vector<OrderedJson>& trained, std::size_t threads);

}  // namespace sluice::cli
