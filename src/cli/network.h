#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "planner/link.h"
#include "planner/network_findings.h"
#include "session/process_group.h"

namespace sluice::cli {

// The processes that `command` measures the network between: several, started by a launcher.
Result<std::unique_ptr<ProcessGroup>> join_network(const std::string& command);

// Ends the job with the code of a failure, and with all that was printed; does not return.
[[noreturn]] void give_up(ProcessGroup& group);

nlohmann::ordered_json to_json(const Link& link);

// The command doctor --net.
int check_network(const Settings& settings);

}  // namespace sluice::cli
