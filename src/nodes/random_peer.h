#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/random.h"
#include "nodes/living.h"

namespace sluice {

// A living worker at random, the same for all chunks of an iteration while nobody is lost: one of
// the ranks first, first + step, first + 2 * step ... other than `self`. None if there is no such.
inline std::optional<NodeId> random_peer(const Living& living, std::uint64_t seed, NodeId self,
                                         Iteration iteration, std::size_t first, std::size_t step) {
  const Topology& topology = living.topology();
  std::vector<NodeId> peers;
  for (std::size_t rank = first; rank < topology.workers(); rank += step) {
    const NodeId peer = topology.worker(rank);
    if (peer != self && living.has(peer)) {
      peers.push_back(peer);
    }
  }
  if (peers.empty()) {
    return std::nullopt;
  }
  Random random(mix(seed + 1) ^ self.index(), static_cast<std::uint64_t>(iteration));
  return peers[random.below(peers.size())];
}

}  // namespace sluice
