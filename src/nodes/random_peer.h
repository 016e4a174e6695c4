#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "base/random.h"
#include "model/topology.h"

namespace sluice {

// A worker at random, the same for all chunks of an iteration: one of the ranks first,
// first + step, first + 2 * step ... other than `self`.
inline NodeId random_peer(const Topology& topology, std::uint64_t seed, NodeId self,
                          Iteration iteration, std::size_t first, std::size_t step) {
  std::vector<NodeId> peers;
  for (std::size_t rank = first; rank < topology.workers(); rank += step) {
    if (topology.worker(rank) != self) {
      peers.push_back(topology.worker(rank));
    }
  }
  check(!peers.empty(), "there is a peer to talk to");
  Random random(mix(seed + 1) ^ self.index(), static_cast<std::uint64_t>(iteration));
  return peers[random.below(peers.size())];
}

}  // namespace sluice
