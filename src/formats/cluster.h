#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "formats/document.h"
#include "model/job.h"
#include "model/topology.h"

namespace sluice {

// A serial channel on which an all-reduce of M bytes takes startup + per_byte * M.
struct AllReduceCost {
  Duration startup{0};
  double ns_per_byte = 0;

  Duration time(Bytes bytes) const {
    return startup + from_ns(static_cast<double>(bytes) * ns_per_byte);
  }
};

// What a message costs the thread that sends or receives it.
struct MessageCost {
  Duration startup{0};
  double ns_per_byte = 0;

  bool operator==(const MessageCost&) const = default;
  bool free() const { return startup == Duration{0} && ns_per_byte == 0; }
  Duration time(Bytes bytes) const {
    return startup + from_ns(static_cast<double>(bytes) * ns_per_byte);
  }
};

// A host that differs from the others.
struct SpecialHost {
  std::size_t index = 0;
  double bandwidth_gbps = 0;                       // of its interface; 0: as the others
  std::optional<Duration> latency = std::nullopt;  // to it and from it; none: as the others
  double speed = 1;                                // of its workers' compute

  bool operator==(const SpecialHost&) const = default;
};

// Consecutive hosts are in a rack. What goes from one rack to another passes the links of both,
// which carry so much in each direction.
struct Racks {
  std::size_t hosts = 1;  // of each
  double uplink_gbps = 0;

  bool operator==(const Racks&) const = default;
};

// The hosts and the network between them, as the simulator sees them.
struct Cluster {
  Topology topology;
  bool places_servers = false;  // the file says where the servers are
  double bandwidth_gbps = 0;    // per interface and direction; 0: unknown
  double ingress_gbps = 0;      // of what a host receives, if it differs; 0: the bandwidth
  Duration latency = from_us(50);
  double reduce_ns_per_byte = 0.1;
  double update_ns_per_byte = 0.1;
  double code_ns_per_byte = 0.1;  // per byte of floats that a codec packs or unpacks
  int server_threads = 1;
  Bytes header_bytes = 64;
  // Longer messages use rendezvous and travel in fragments of this size; 0: all are eager.
  Bytes fragment_bytes = 0;
  // What a host's processors can do and must: see Cores. By default they are free of charge.
  double cores = 0;          // 0: as many as are needed
  double compute_cores = 0;  // that a worker keeps busy while it computes
  int message_threads = 1;   // that move a host's messages; 2: one sends, the other receives
  MessageCost sending;
  MessageCost receiving;
  Duration sync{0};                        // fixed cost of synchronising a chunk once
  std::optional<AllReduceCost> allreduce;  // replaces the network model if present
  // What makes hosts differ.
  std::vector<SpecialHost> special_hosts;
  std::size_t hosts_per_nic = 1;  // consecutive hosts, of one machine, that share an interface
  std::optional<Racks> racks;
  double jitter = 0;  // standard deviation of the logarithm of a worker's compute per iteration

  Duration wire_time(Bytes bytes) const;
  Duration ingress_time(Bytes bytes) const;
  // Hosts on the same interface exchange through memory.
  std::size_t interface_of(HostId host) const {
    return hosts_per_nic == 1 ? host.index() : host.index() / hosts_per_nic;
  }
  // By worker, apart from jitter: the factor on its compute times.
  double slowdown(std::size_t worker) const;
  bool charges_messages() const { return !sending.free() || !receiving.free(); }
  bool uses_rendezvous(Bytes payload) const {
    return fragment_bytes > 0 && payload > fragment_bytes;
  }
  LinkCost link() const {
    const bool known = bandwidth_gbps > 0;
    return {latency, 8.0 / bandwidth_gbps, reduce_ns_per_byte,
            known ? wire_time(header_bytes) : Duration{0}, code_ns_per_byte};
  }
};

// Reads the TOML cluster format; errors name the file and the key.
Result<Cluster> read_cluster(const std::string& path);
Result<Cluster> parse_cluster(const std::string& text, const std::string& source);
// The same with other values for some keys.
Result<Cluster> read_cluster(const std::string& path, const Json& values);
// Writes the same format.
std::string to_toml(const Cluster& cluster);
std::string to_toml(const AllReduceCost& cost);  // only the [allreduce] table

}  // namespace sluice
