#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "model/topology.h"

namespace sluice {

// Whose state the workers of a host take that have none of their own.
using Donors = std::map<HostId, HostId>;

// For each of these hosts the next one with workers that has a state, in a circle; for none if
// there is no such host.
Donors donors_for(const std::vector<HostId>& without_state, const Topology& topology,
                  const std::function<bool(HostId)>& has_state);

// As the processes of a run tell each other.
nlohmann::json json_of(const Donors& donors);
Donors donors_from(const nlohmann::json& json);
nlohmann::json json_of(const std::vector<HostId>& hosts);
std::vector<HostId> hosts_from(const nlohmann::json& json);

}  // namespace sluice
