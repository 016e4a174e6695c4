#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/random.h"
#include "model/topology.h"

namespace sluice {

// Who meets this worker in this iteration: all workers are drawn into pairs by the seed and the
// iteration, and every one finds the same pairs. None if their number is odd and this one is left.
inline std::optional<NodeId> partner_of(const Topology& topology, std::uint64_t seed, NodeId self,
                                        Iteration iteration) {
  std::vector<std::size_t> ranks(topology.workers());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  Random random(mix(seed + 2), static_cast<std::uint64_t>(iteration));
  for (std::size_t left = ranks.size(); left > 1; --left) {
    std::swap(ranks[left - 1], ranks[random.below(left)]);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t other = i ^ 1U;
    if (topology.worker(ranks[i]) == self && other < ranks.size()) {
      return topology.worker(ranks[other]);
    }
  }
  return std::nullopt;
}

}  // namespace sluice
