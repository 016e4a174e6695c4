#pragma once

#include <nlohmann/json_fwd.hpp>

#include "drivers/realtime/load_ahead.h"
#include "report/table.h"
#include "session/process_group.h"

namespace sluice {

// The work of the loaders of all processes, for the summary; the leader collects it.
nlohmann::ordered_json collect_loading(ProcessGroup& group, const LoadingTally& own);
// Adds it to a table of two columns.
void add_loading_rows(const nlohmann::ordered_json& loading, Table& table);

}  // namespace sluice
