#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"

namespace sluice {

// Deals samples to workers. Every epoch deals each sample once, except for fewer samples than there
// are workers. All batches of an iteration have the same size and come from one bucket. They are
// consecutive parts, by rank, of a permutation that depends on the seed and the epoch. If the
// samples of a bucket do not fill its batches, all of them become smaller, with sizes that differ
// by at most one. So no iteration is left with only a few samples.
struct Sharding {
  std::uint64_t seed = 1;
  std::int64_t samples = 0;
  std::int64_t batch = 1;  // max per worker
  std::size_t workers = 1;
  std::vector<std::int64_t> bucket_ends = {};  // see Samples

  // 0 if there are too few samples for a full batch per worker.
  std::int64_t steps_per_epoch() const;
  std::int64_t samples_per_epoch() const;
  // Pure functions that need steps_per_epoch() > 0: the number of samples of all workers together,
  // the samples of one worker's batch, and the augmentation seed, which is the same for a whole
  // epoch.
  std::int64_t samples_of(Iteration iteration) const;
  std::vector<std::int64_t> batch_of(std::size_t rank, Iteration iteration) const;
  std::uint64_t augmentation_seed_of(Iteration iteration) const;
};

}  // namespace sluice
