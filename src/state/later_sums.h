#pragma once

#include <cstddef>
#include <span>

#include "model/job.h"
#include "partition/chunk_map.h"
#include "state/training_state.h"

namespace sluice {

// Between two phases: the sums that these workers, by rank, use later were made by the workers of
// one job, and are divided by the number of workers of the next one. So that the means stay what
// they were, the sums are scaled.
void keep_means(TrainingState& state, const ChunkMap& chunks, std::span<const std::size_t> workers,
                const Job& before, const Job& next);

}  // namespace sluice
