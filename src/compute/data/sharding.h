#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"

namespace sluice {

// Deals samples to workers. An epoch is a permutation of all samples made from the seed; the
// batches of one iteration are consecutive parts of it, in the order of the ranks. Samples at the
// end of an epoch that do not fill a batch for every worker are left out of that epoch.
struct Sharding {
  std::uint64_t seed = 1;
  std::int64_t samples = 0;
  std::int64_t batch = 1;
  std::size_t workers = 1;

  // 0 if the samples do not suffice for one iteration.
  std::int64_t steps_per_epoch() const {
    return samples / (batch * static_cast<std::int64_t>(workers));
  }
  // The samples of the worker's batch; a pure function that needs steps_per_epoch() > 0.
  std::vector<std::int64_t> batch_of(std::size_t rank, Iteration iteration) const;
};

}  // namespace sluice
