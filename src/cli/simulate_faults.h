#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli/settings.h"
#include "cli/simulated_setup.h"
#include "report/table.h"

namespace sluice::cli {

// Refuses settings about faults that would have no effect.
Result<void> check_fault_settings(const Settings& settings);

// What the faults cost that the settings ask for; none if they ask for none.
Result<std::optional<nlohmann::ordered_json>> fault_costs(const Settings& settings,
                                                          const SimulatedSetup& setup);

void add_fault_rows(const nlohmann::ordered_json& costs, Table& table);

}  // namespace sluice::cli
