#pragma once

#include <functional>
#include <string>

#include "cli/console.h"
#include "cli/settings.h"
#include "report/run_folder.h"

namespace sluice::cli {

// simulate with --sweep: all combinations of values, as a table, a CSV file and a picture. With
// --train each of them trains.
int simulate_sweep(const Settings& settings);

// A sweep that has run and written its files.
struct Swept {
  const RunFolder& folder;
  const OrderedJson& all;  // for --json
  std::string table;
  std::string files;  // their names
};
// The same, but `then` shows the result and returns the exit code. `name` is the beginning of the
// name of a new folder.
int run_sweep(const Settings& settings, const std::string& name,
              const std::function<int(const Swept&)>& then);

// Several presets, as in --preset p3,wfbp, are one more axis of the sweep.
void sweep_over_presets(Settings::Flags& flags);

}  // namespace sluice::cli
