#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "formats/cluster.h"

namespace sluice {

// How much longer than in its profile a worker computes: by the speed of its host, and by jitter,
// which is drawn for each worker and iteration, lognormal with mean 1. Draws further than this many
// standard deviations from the mean count as this far, so that there is a fastest compute.
inline constexpr double kMaxDeviations = 3;

class ComputePace {
 public:
  // `slowdowns` are further factors, by worker; empty: none.
  ComputePace(const Cluster& cluster, const std::vector<double>& slowdowns, std::uint64_t seed);

  double slowdown(std::size_t worker, Iteration iteration) const;

  // No worker of the cluster has a smaller one.
  static double min_slowdown(const Cluster& cluster);

 private:
  std::vector<double> usual_;  // by worker
  double jitter_;
  std::uint64_t seed_;
};

}  // namespace sluice
