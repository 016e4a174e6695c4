#include "session/donors.h"

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

}  // namespace sluice
