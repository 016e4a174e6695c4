#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "cli/simulated_setup.h"
#include "report/table.h"
#include "session/sweep.h"

// What sweeps of simulations and sweeps of trainings have in common.
namespace sluice::cli {

// One combination of a sweep.
struct SweepCell {
  Settings settings;
  SimulatedSetup setup;
};

// All of them, in the order of the sweep. A key of an axis is a setting or one of the cluster's
// file. An error names the combination.
Result<std::vector<SweepCell>> sweep_cells(const Settings& settings, const Sweep& sweep);

// Tells how far a sweep is: a line that a terminal redraws; elsewhere a line for each tenth.
void show_cells_done(std::size_t finished, std::size_t cells, const char* noun);

// A column for each axis.
std::vector<Table::Column> axis_columns(const std::vector<SweepAxis>& axes);

// {"cells": [{"values": {...}, "summary": {...}}, ...]}
OrderedJson sweep_json(const Sweep& sweep, const std::vector<OrderedJson>& summaries);

}  // namespace sluice::cli
