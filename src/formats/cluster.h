#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "model/job.h"
#include "model/topology.h"

namespace sluice {

// A serial channel that takes startup + per_byte * M for an all-reduce of M bytes.
struct AllReduceCost {
  Duration startup{0};
  double ns_per_byte = 0;

  Duration time(Bytes bytes) const {
    return startup + from_ns(static_cast<double>(bytes) * ns_per_byte);
  }
};

// The machines and the network between them, as the simulator sees them.
struct Cluster {
  Topology topology;
  double bandwidth_gbps = 0;  // of each interface, in each direction; 0: not known
  Duration latency = from_us(50);
  double reduce_ns_per_byte = 0.1;
  double update_ns_per_byte = 0.1;
  double code_ns_per_byte = 0.1;  // of the floats that a codec packs or unpacks
  int server_threads = 1;
  Bytes header_bytes = 64;
  // A longer message is announced, asked for, and goes in such pieces; 0: each goes whole, at once.
  Bytes fragment_bytes = 0;
  Duration sync{0};                        // fixed cost of one synchronisation of a chunk
  std::optional<AllReduceCost> allreduce;  // replaces the network if present

  Duration wire_time(Bytes bytes) const;
  bool uses_rendezvous(Bytes payload) const {
    return fragment_bytes > 0 && payload > fragment_bytes;
  }
  LinkCost link() const { return {latency, 8.0 / bandwidth_gbps, reduce_ns_per_byte}; }
};

// Reads the TOML cluster format; errors name the file and the key.
Result<Cluster> read_cluster(const std::string& path);
Result<Cluster> parse_cluster(const std::string& text, const std::string& source);
// The same cluster in that format.
std::string to_toml(const Cluster& cluster);
std::string to_toml(const AllReduceCost& cost);  // the table [allreduce] alone

}  // namespace sluice
