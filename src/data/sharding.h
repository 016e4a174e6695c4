#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"

namespace sluice {

// Deals samples to workers. Every epoch deals each sample once, except for fewer samples than there
// are workers. A batch comes from one bucket. The batches of a bucket are consecutive parts of a
// permutation that depends on the seed and the epoch. If the samples of a bucket do not fill its
// batches, all of them become smaller, with sizes that differ by at most one. So no iteration is
// left with only a few samples.
//
// With a single bucket, the batches of an iteration are consecutive parts, by rank: the joined
// batch, which the workers share equally, or by their shares. With several buckets and equal
// shares, every worker draws a batch from any bucket. Unequal shares are of a joined batch, so then
// all workers draw from the same bucket.
struct Sharding {
  std::uint64_t seed = 1;
  std::int64_t samples = 0;
  std::int64_t batch = 1;  // max per worker; with shares, max of the mean over the workers
  std::size_t workers = 1;
  std::vector<std::int64_t> bucket_ends = {};  // see Samples
  std::vector<double> shares = {};  // of the joined batch, by worker, in any unit; empty: equal

  // 0 if there are too few samples for a full batch per worker.
  std::int64_t steps_per_epoch() const;
  std::int64_t samples_per_epoch() const;
  // Pure functions that need steps_per_epoch() > 0: the number of samples of all workers together,
  // the samples of one worker's batch, and the augmentation seed, which is the same for a whole
  // epoch.
  std::int64_t samples_of(Iteration iteration) const;
  std::vector<std::int64_t> batch_of(std::size_t rank, Iteration iteration) const;
  // What the mean over a worker's batch counts in the mean over the workers, which thereby is the
  // mean over all samples of the iteration; 1 if all batches have the same size.
  double weight_of(std::size_t rank, Iteration iteration) const;
  std::uint64_t augmentation_seed_of(Iteration iteration) const;
};

// Deals `total` items, at least one for each, as near to these shares as whole numbers can be.
std::vector<std::int64_t> deal(std::int64_t total, const std::vector<double>& shares);

}  // namespace sluice
