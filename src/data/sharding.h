#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"

namespace sluice {

// Deals samples to workers. In every epoch each sample is dealt once, but for fewer than there are
// workers. All batches of an iteration are equally large and of one bucket, consecutive parts of a
// permutation made from the seed and the epoch, in the order of the ranks. Where the samples of a
// bucket do not fill its batches, all of these are smaller, none by more than one sample than
// another: so no iteration is left with a few samples only.
struct Sharding {
  std::uint64_t seed = 1;
  std::int64_t samples = 0;
  std::int64_t batch = 1;  // of a worker, at most
  std::size_t workers = 1;
  std::vector<std::int64_t> bucket_ends = {};  // as of Samples

  // 0 if the samples do not suffice for a full batch for every worker.
  std::int64_t steps_per_epoch() const;
  std::int64_t samples_per_epoch() const;
  // Pure functions that need steps_per_epoch() > 0: how many samples all workers get together, the
  // samples of the worker's batch, and what their random variations depend on, which is one number
  // for an epoch.
  std::int64_t samples_of(Iteration iteration) const;
  std::vector<std::int64_t> batch_of(std::size_t rank, Iteration iteration) const;
  std::uint64_t augmentation_seed_of(Iteration iteration) const;
};

}  // namespace sluice
