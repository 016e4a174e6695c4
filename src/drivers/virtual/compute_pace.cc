#include "drivers/virtual/compute_pace.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace sluice {
namespace {

// Of a lognormal distribution with mean 1.
double factor_of(double deviations, double jitter) {
  return std::exp(jitter * deviations - jitter * jitter / 2);
}

// By Box and Muller.
double standard_normal(Random random) {
  const double u = 1 - random.uniform();  // not zero
  const double v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

ComputePace::ComputePace(const Cluster& cluster, const std::vector<double>& slowdowns,
                         std::uint64_t seed)
    : usual_(cluster.topology.workers(), 1), jitter_(cluster.jitter), seed_(seed) {
  for (std::size_t w = 0; w < usual_.size(); ++w) {
    usual_[w] = (slowdowns.empty() ? 1 : slowdowns[w]) * cluster.slowdown(w);
  }
}

double ComputePace::slowdown(std::size_t worker, Iteration iteration) const {
  if (jitter_ == 0) {
    return usual_[worker];
  }
  const Random random(mix(seed_) ^ worker, static_cast<std::uint64_t>(iteration));
  const double drawn = std::clamp(standard_normal(random), -kMaxDeviations, kMaxDeviations);
  return usual_[worker] * factor_of(drawn, jitter_);
}

double ComputePace::min_slowdown(const Cluster& cluster) {
  double min = 1;
  for (const SpecialHost& host : cluster.special_hosts) {
    min = std::min(min, 1 / host.speed);
  }
  return min * factor_of(cluster.jitter == 0 ? 0 : -kMaxDeviations, cluster.jitter);
}

}  // namespace sluice
