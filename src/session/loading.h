#pragma once

#include <nlohmann/json_fwd.hpp>

#include "drivers/realtime/load_ahead.h"
#include "report/table.h"
#include "session/process_group.h"

namespace sluice {

// What the loaders of all processes did, for the summary; the leader learns of the others.
nlohmann::ordered_json collect_loading(ProcessGroup& group, const AheadLoader& loader);
// Shows the same in a table of two columns.
void add_loading_rows(const nlohmann::ordered_json& loading, Table& table);

}  // namespace sluice
