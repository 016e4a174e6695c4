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

// Joins the processes between which `command` measures the network: several, started by a launcher.
Result<std::unique_ptr<ProcessGroup>> join_network(const std::string& command);

// What --transport and --transport-threads say.
TransportChoice transport_choice(const Settings& settings);

// Flushes the output and ends the job with the exit code of a failure; does not return.
[[noreturn]] void give_up(ProcessGroup& group);

nlohmann::ordered_json to_json(const Link& link);

// The command doctor --net.
int check_network(const Settings& settings);

}  // namespace sluice::cli
