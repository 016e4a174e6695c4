#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/page/page.h"
#include "report/page/run_data.h"

namespace sluice {

// The report of one run.
Page run_page(const RunData& run);

// Several runs side by side, at least two.
Page comparison_page(const std::vector<RunData>& runs);

// Reads the folder of a run and writes report.html into it; returns the path of the page.
Result<std::string> write_report(const std::filesystem::path& folder);

}  // namespace sluice
