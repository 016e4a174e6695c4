#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/crew.h"
#include "drivers/realtime/load_ahead.h"
#include "report/table.h"

namespace sluice::cli {

// What the loaders of all processes did, for the summary; the first process learns of the others.
nlohmann::ordered_json collect_loading(const Crew& crew, const AheadLoader& loader);
// Shows the same in a table of two columns.
void add_loading_rows(const nlohmann::ordered_json& loading, Table& table);

}  // namespace sluice::cli
