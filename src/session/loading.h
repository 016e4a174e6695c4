#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "drivers/realtime/load_ahead.h"
#include "report/table.h"

namespace sluice {

// The work of the loaders of a process as text, and of those of all for the summary.
std::string text_of(const LoadingTally& own);
nlohmann::ordered_json loading_of(std::span<const std::string> texts);
// Adds it to a table of two columns.
void add_loading_rows(const nlohmann::ordered_json& loading, Table& table);

}  // namespace sluice
