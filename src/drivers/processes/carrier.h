#pragma once

#include <array>
#include <optional>
#include <string>

#include "drivers/processes/process_world.h"
#include "model/names.h"
#include "model/strategy.h"
#include "model/topology.h"

namespace sluice {

// What carries the messages of training between processes.
enum class TransportKind { kMpi, kTcp };
inline constexpr std::array<Names<TransportKind>, 2> kTransportNames{
    {{TransportKind::kMpi, "mpi"}, {TransportKind::kTcp, "tcp"}}};

// What was asked for; none: whatever is best.
struct TransportChoice {
  std::optional<TransportKind> kind;
  std::optional<int> threads;  // of a process, that move the bytes of TCP connections
};

// What it came to, the same in all processes but for the address.
struct Carrier {
  std::string address;  // where this process takes TCP connections; empty: MPI carries messages
  int threads = 0;      // beside the loop; 0: the loop moves the bytes

  bool is_tcp() const { return !address.empty(); }
  TransportKind kind() const { return is_tcp() ? TransportKind::kTcp : TransportKind::kMpi; }
};

// Tries what was asked for. Connections of our own need less processor time than MPI's, and threads
// can share them. But MPI may know a faster way than TCP, between processes of one machine or over
// a network that is more than Ethernet, and only MPI and shared memory make sums. So by default TCP
// is for processes that have a machine each and use TCP for MPI, too, and for exchanges whose
// messages are short. Throws if TCP was asked for
// and cannot be had. Collective, after meet().
Carrier choose_carrier(ProcessWorld& world, const Topology& topology, const Strategy& strategy,
                       const TransportChoice& choice);

}  // namespace sluice
