#pragma once

#include <string>

namespace sluice::cli {

// Writes the report of a run that has ended, and returns its path. If that fails, warns and returns
// the folder: the run is not lost.
std::string report_of(const std::string& folder);

}  // namespace sluice::cli
