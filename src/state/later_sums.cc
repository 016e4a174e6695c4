#include "state/later_sums.h"

#include <algorithm>
#include <vector>

#include "model/aggregation_groups.h"
#include "partition/fragments.h"

namespace sluice {

void keep_means(TrainingState& state, const ChunkMap& chunks, std::span<const std::size_t> workers,
                const Job& before, const Job& next) {
  const Strategy& strategy = next.strategy;
  const auto fragments = fragments_of(chunks, strategy.cadence.fragments);
  const float factor = static_cast<float>(AggregationGroups(next).size()) /
                       static_cast<float>(AggregationGroups(before).size());
  for (std::size_t c = 0; c < fragments.size(); ++c) {
    const Iteration begun = strategy.cadence.under_way_at(next.first, fragments[c]);
    if (begun == 0 || std::ranges::count(next.given_up, GivenUpSum{ChunkId(c), begun}) > 0) {
      continue;
    }
    const BufferRange sum{Buffer::kGradients, chunks[ChunkId(c)].range, strategy.sum_slot(begun)};
    for (const std::size_t worker : workers) {
      for (float& value : state.workspace(next.topology.worker(worker)).view(sum)) {
        value *= factor;
      }
    }
  }
}

}  // namespace sluice
