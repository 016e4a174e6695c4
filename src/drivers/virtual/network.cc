#include "drivers/virtual/network.h"

namespace sluice {
namespace {

bool latencies_differ(const Cluster& cluster) {
  return std::ranges::any_of(cluster.special_hosts,
                             [](const SpecialHost& host) { return host.latency.has_value(); });
}

std::size_t groups_of(std::size_t hosts, std::size_t size) { return (hosts + size - 1) / size; }

}  // namespace

Network::Network(const Cluster& cluster)
    : cluster_(cluster),
      interfaces_(
          groups_of(cluster.topology.hosts(), cluster.hosts_per_nic),
          Interface{cluster.bandwidth_gbps,
                    cluster.ingress_gbps == 0 ? cluster.bandwidth_gbps : cluster.ingress_gbps}),
      racks_(cluster.racks ? groups_of(cluster.topology.hosts(), cluster.racks->hosts) : 0),
      has_special_(!cluster.special_hosts.empty()),
      has_hops_(cluster.racks.has_value() || latencies_differ(cluster)) {
  latencies_.assign(has_hops_ ? cluster.topology.hosts() : 0, cluster.latency);
  for (const SpecialHost& host : cluster.special_hosts) {
    if (host.bandwidth_gbps > 0) {
      Interface& own = interfaces_[cluster.interface_of(HostId(host.index))];
      own.out_gbps = own.in_gbps = host.bandwidth_gbps;
    }
    if (host.latency) {
      latencies_[host.index] = *host.latency;
    }
  }
}

Network::Passage Network::leave(HostId from, Bytes payload, Time now, bool counted) {
  Interface& sender = interfaces_[cluster_.interface_of(from)];
  const Duration wire = sender.time_out(payload + cluster_.header_bytes);
  sender.egress_busy += counted ? wire : Duration{0};
  return {now, now + wire};
}

Duration Network::latency_before(Hop hop, HostId from, HostId to) const {
  return hop == Hop::kIngress ? std::max(latencies_[from.index()], latencies_[to.index()])
                              : Duration{0};
}

Network::Passage Network::pass(Hop hop, HostId from, HostId to, Bytes payload, Time now, Time last,
                               bool counted) {
  const Bytes bytes = payload + cluster_.header_bytes;
  const auto through = [&](Time& free, Duration length) {
    const Time begin = std::max(now, free);
    free = std::max(begin + length, last);
    return Passage{begin, free};
  };
  switch (hop) {
    case Hop::kUplink:
      return through(racks_[rack_of(from)].up_free, time_at(cluster_.racks->uplink_gbps, bytes));
    case Hop::kDownlink:
      return through(racks_[rack_of(to)].down_free, time_at(cluster_.racks->uplink_gbps, bytes));
    case Hop::kIngress:
      break;
  }
  Interface& receiver = interfaces_[cluster_.interface_of(to)];
  const Duration reception = receiver.time_in(bytes);
  receiver.ingress_busy += counted ? reception : Duration{0};
  return through(receiver.ingress_free, reception);
}

Duration Network::mean(Duration Interface::*busy) const {
  const std::size_t hosts = cluster_.topology.hosts();
  Duration sum{0};
  for (std::size_t h = 0; h < hosts; ++h) {
    sum += interfaces_[cluster_.interface_of(HostId(h))].*busy / static_cast<std::int64_t>(hosts);
  }
  return sum;
}

}  // namespace sluice
