#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "report/page/page.h"
#include "report/page/run_data.h"

// The charts of one run or of several.
namespace sluice {

// At most `max` points: each stands for several neighbours, with their mean, and their smallest and
// largest y as its spread.
LineChart::Line thinned(const LineChart::Line& line, std::size_t max);

// Loss and accuracy, by samples and by seconds, as far as the runs have them.
Charts learning_charts(const std::vector<const RunData*>& runs);

// Where the time of an iteration went, a bar for each run that says so.
StackedBars breakdown_bars(const std::vector<const RunData*>& runs);

// How busy links were over time: in the time line of a run, or as an emulated cluster measured.
Charts utilisation_charts(const RunData& run);

}  // namespace sluice
