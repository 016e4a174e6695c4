#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/job.h"

namespace sluice {

// The order in which a worker takes the chunks of a layer. Over servers each begins with another
// one: if all began with the same, all would flood the same server first.
class ChunkOrder {
 public:
  ChunkOrder(const Job& job, NodeId self)
      : first_(job.strategy.uses_servers() && job.strategy.staggered ? self.index() : 0) {}

  template <class F>
  void for_each(std::span<const ChunkId> chunks, F f) const {
    const std::size_t first = chunks.empty() ? 0 : first_ % chunks.size();
    std::ranges::for_each(chunks.subspan(first), f);
    std::ranges::for_each(chunks.first(first), f);
  }

 private:
  std::size_t first_;
};

}  // namespace sluice
