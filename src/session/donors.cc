#include "session/donors.h"

#include <nlohmann/json.hpp>

namespace sluice {

Donors donors_for(const std::vector<HostId>& without_state, const Topology& topology,
                  const std::function<bool(HostId)>& has_state) {
  Donors donors;
  for (const HostId host : without_state) {
    for (std::size_t after = 1; after < topology.worker_hosts(); ++after) {
      const HostId next((host.index() + after) % topology.worker_hosts());
      if (has_state(next)) {
        donors.emplace(host, next);
        break;
      }
    }
  }
  return donors;
}

nlohmann::json json_of(const Donors& donors) {
  auto pairs = nlohmann::json::array();
  for (const auto& [host, donor] : donors) {
    pairs.push_back({host.index(), donor.index()});
  }
  return pairs;
}

Donors donors_from(const nlohmann::json& json) {
  Donors donors;
  for (const auto& pair : json) {
    donors.emplace(HostId(pair.at(0).get<std::size_t>()), HostId(pair.at(1).get<std::size_t>()));
  }
  return donors;
}

nlohmann::json json_of(const std::vector<HostId>& hosts) {
  auto indices = nlohmann::json::array();
  for (const HostId host : hosts) {
    indices.push_back(host.index());
  }
  return indices;
}

std::vector<HostId> hosts_from(const nlohmann::json& json) {
  std::vector<HostId> hosts;
  for (const auto& index : json) {
    hosts.emplace_back(index.get<std::size_t>());
  }
  return hosts;
}

}  // namespace sluice
