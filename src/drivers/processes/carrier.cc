#include "drivers/processes/carrier.h"

#include <algorithm>
#include <stdexcept>

#include "drivers/processes/launch.h"
#include "drivers/realtime/processor.h"
#include "drivers/tcp/mesh.h"
#include "drivers/tcp/socket.h"

namespace sluice {
namespace {

// A fast link needs more than one thread: one that writes and one that reads for each peer, unless
// that is more than there are cores, of which one computes. On a slow link they sleep. Where cores
// are short, another thread only takes time from the others.
int threads_for(const Topology& topology) {
  const std::size_t processes = processes_on_a_machine(topology);
  const std::size_t peers = topology.hosts() - 1;
  return has_idle_cores(processes)
             ? static_cast<int>(2 * std::min(peers, usable_cores(processes) - 1))
             : 0;
}

// With the long messages of kvstore MPI was measured to be faster; the reason is not known.
bool has_short_messages(const Strategy& strategy) {
  return strategy.exchange == Exchange::kAllReduce ? strategy.segment_params > 0
                                                   : strategy.partition == Partition::kSlice;
}

}  // namespace

Carrier choose_carrier(ProcessWorld& world, const Topology& topology, const Strategy& strategy,
                       const TransportChoice& choice) {
  const bool must = !world.has_transport();
  const bool asked = choice.kind == TransportKind::kTcp || must;
  const bool suits = processes_on_a_machine(topology) == 1 && !topology.on_one_machine() &&
                     has_short_messages(strategy);
  if (must && (choice.kind == TransportKind::kMpi || strategy.driver_sums())) {
    throw std::runtime_error(choice.kind == TransportKind::kMpi
                                 ? "--transport mpi: launch has started the processes without MPI"
                                 : "launch has started the processes without MPI, which would make "
                                   "these sums; choose another --collective");
  }
  if (choice.kind == TransportKind::kMpi || topology.hosts() == 1 || strategy.driver_sums() ||
      (!asked && !suits)) {
    return {};
  }
  const std::string address = topology.on_one_machine() ? "127.0.0.1" : world.address();
  if (world.joins()) {
    return {address, choice.threads.value_or(threads_for(topology))};
  }
  const auto mesh = connect_mesh(world.rank(), address,
                                 [&](const std::string& own) { return world.all_gather(own); });
  if (!mesh && asked) {
    throw std::runtime_error("--transport tcp: " + mesh.error().message());
  }
  return mesh ? Carrier{address, choice.threads.value_or(threads_for(topology))} : Carrier{};
}

}  // namespace sluice
