#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"

namespace sluice::cli {

// Each command prints its result to standard output and returns the exit code of the program; see
// console.h for the codes.
int train(const Settings& settings);
int simulate(const Settings& settings);
int presets(const Settings& settings);
int models(const Settings& settings);
int doctor(const Settings& settings);
int probe(const Settings& settings);
int profile(const Settings& settings);
// The command is what stands behind "--".
int lab(const Settings& settings, const std::vector<std::string>& command);

}  // namespace sluice::cli
