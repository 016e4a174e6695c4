#include "drivers/virtual/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice {

// The longest time that anything can be busy: one interface, processor or channel that handles what
// all workers exchange, in both directions.
Result<void> check_times(const Profile& profile, const Cluster& cluster) {
  double params = 0;
  for (const LayerProfile& layer : profile.layers) {
    params += static_cast<double>(layer.params);
  }
  double slowest = cluster.racks ? std::min(cluster.bandwidth_gbps, cluster.racks->uplink_gbps)
                                 : cluster.bandwidth_gbps;
  for (const SpecialHost& host : cluster.special_hosts) {
    slowest = host.bandwidth_gbps > 0 ? std::min(slowest, host.bandwidth_gbps) : slowest;
  }
  const double wire = cluster.bandwidth_gbps > 0 ? 8 / slowest : 0;
  const double arithmetic =
      std::max({cluster.reduce_ns_per_byte, cluster.update_ns_per_byte, cluster.code_ns_per_byte});
  const double sum = cluster.allreduce ? cluster.allreduce->ns_per_byte : 0;
  const double ns_per_byte = std::max({wire, arithmetic, sum});
  const auto workers = static_cast<double>(cluster.topology.workers());
  const double days = 2 * params * kFloatBytes * workers * ns_per_byte / (86'400 * 1e9);
  const double max_days = to_seconds(kForever) / 86'400;
  if (days > max_days) {
    return Error(fmt::format(
        "{} workers exchange {:.3g} parameters each, which at {:.3g} ns per byte may take {:.3g} "
        "days per iteration; up to {:.0f} days can be simulated: check the rates of the cluster",
        cluster.topology.workers(), params, ns_per_byte, days, max_days));
  }
  return {};
}

}  // namespace sluice
