#include "planner/allreduce_cost.h"

#include <algorithm>

#include "base/check.h"
#include "codecs/size.h"
#include "collectives/choice.h"
#include "planner/layer_times.h"

namespace sluice {
namespace {

// Sizes from the smallest layer up to all layers together, each four times the one before.
std::vector<std::int64_t> sizes_for(const std::vector<Layer>& layers, std::int64_t max_params) {
  const std::int64_t largest =
      std::max<std::int64_t>(2, std::min(total_params(layers), max_params));
  std::int64_t smallest = largest / 2;
  for (const Layer& layer : layers) {
    if (!layer.range.empty()) {
      smallest = std::min(smallest, layer.range.size());
    }
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t params = smallest; params < largest; params *= 4) {
    sizes.push_back(params);
  }
  sizes.push_back(largest);
  return sizes;
}

// The arithmetic at both ends. The sum has what a dense codec packs at the hops; one whose codes
// travel whole packs once at each end.
Duration arithmetic_time(const Job& job, const Cluster& cluster, std::int64_t params) {
  const double ns_per_byte = cluster.update_ns_per_byte +
                             (job.strategy.travels_whole() ? 2 * cluster.code_ns_per_byte : 0);
  return from_ns(static_cast<double>(params * kFloatBytes) * ns_per_byte) + cluster.sync;
}

// Sums by messages. While one is updated, the next is on the links.
StreamCost network_cost(const Job& job, const Cluster& cluster) {
  const CollectiveChoice choice(job);
  const double tail = 1 / static_cast<double>(std::max<std::size_t>(1, job.layers.size()));
  std::vector<Timing> alone;
  std::vector<Timing> busy;
  for (const std::int64_t params : sizes_for(job.layers, total_params(job.layers))) {
    const SumCost sum = choice.choose(params, tail).cost;
    const Duration arithmetic = arithmetic_time(job, cluster, params);
    alone.push_back({params * kFloatBytes, sum.alone + arithmetic});
    busy.push_back({params * kFloatBytes, std::max(sum.busy, arithmetic)});
  }
  return {fit_allreduce(alone), fit_allreduce(busy)};
}

// Sums on the cluster's all-reduce channel, one at a time.
AllReduceCost channel_cost(const Job& job, const Cluster& cluster) {
  if (!job.strategy.coded()) {
    return {cluster.allreduce->startup + cluster.sync, cluster.allreduce->ns_per_byte};
  }
  std::vector<Timing> samples;
  for (const std::int64_t params : sizes_for(job.layers, total_params(job.layers))) {
    const Bytes sent = coded_size(job.strategy, params, 1);
    samples.push_back({params * kFloatBytes, cluster.allreduce->time(sent) + cluster.sync});
  }
  return fit_allreduce(samples);
}

// Enough to saturate the link: beyond it, time is proportional to size.
constexpr std::int64_t kMaxMeasured = 4'000'000;
constexpr Iteration kIterations = 8;
// Small sums are short and vary most, so more of them are measured.
constexpr std::int64_t kManyParams = 1 << 16;
constexpr Iteration kShortIterations = 24;

// How many sums show how far sums overlap, and up to how many parameters in all.
constexpr std::int64_t kStream = 8;
constexpr std::int64_t kMaxInStream = 1'000'000;

// The time of so many sums of equal length at once.
Timing side_by_side(const Job& job, std::int64_t params, std::int64_t sums,
                    const TrainAside& train) {
  const auto count = static_cast<std::size_t>(sums);
  Job aside = job;
  aside.layers = lay_out(std::vector<std::string>(count, "sum"), std::vector(count, params));
  aside.strategy.partition = Partition::kLayer;
  aside.groups = {};
  aside.first = 0;
  LayerTimes times(job.topology.workers(), count);
  train(assemble(std::move(aside)), params > kManyParams ? kIterations : kShortIterations, times);
  return timing_of(params * kFloatBytes, times.iterations());
}

}  // namespace

// With y = a + b*x and weights w = 1/y^2, the normal equations are
//   a*sum(w) + b*sum(w*x) = sum(w*y),   a*sum(w*x) + b*sum(w*x^2) = sum(w*x*y).
AllReduceCost fit_allreduce(std::span<const Timing> timings, double wire_ns_per_byte) {
  double s = 0;
  double sx = 0;
  double sxx = 0;
  double sy = 0;
  double sxy = 0;
  for (const Timing& timing : timings) {
    const auto x = static_cast<double>(timing.bytes);
    const double y = std::max(to_us(timing.median), 1e-6) * 1e3;
    const double w = 1 / (y * y);
    s += w;
    sx += w * x;
    sxx += w * x * x;
    sy += w * y;
    sxy += w * x * y;
  }
  const double determinant = s * sxx - sx * sx;
  check(determinant > 0, "a line needs at least two sizes");
  const double a = (sy * sxx - sxy * sx) / determinant;
  const double b = (s * sxy - sx * sy) / determinant;
  if (b < wire_ns_per_byte) {
    return {from_ns(std::max(0.0, (sy - wire_ns_per_byte * sx) / s)), wire_ns_per_byte};
  }
  return a < 0 ? AllReduceCost{Duration{0}, std::max(sxy / sxx, wire_ns_per_byte)}
               : AllReduceCost{from_ns(a), b};
}

double wire_ns_per_byte(std::size_t machines, double gbps) {
  check(machines > 0 && gbps > 0, "a wire needs a rate and machines");
  const auto n = static_cast<double>(machines);
  return 2 * (n - 1) / n * 8 / gbps;
}

double relative_error(const AllReduceCost& cost, const Timing& timing) {
  return to_us(cost.time(timing.bytes)) / to_us(timing.median) - 1;
}

StreamCost simulated_allreduce(const Job& job, const Cluster& cluster) {
  return cluster.allreduce ? serial(channel_cost(job, cluster)) : network_cost(job, cluster);
}

std::vector<Timing> allreduce_timings(const Job& job, std::span<const std::int64_t> sizes,
                                      const TrainAside& train) {
  std::vector<Timing> timings;
  for (const std::int64_t params : sizes) {
    timings.push_back(side_by_side(job, params, 1, train));
  }
  return timings;
}

// If k sums side by side take T(k), each further one takes (T(k) - T(1)) / (k - 1). Where noise
// hides that, a hundredth of a sum's time stands for it, since none is free.
StreamCost measured_allreduce(const Job& job, const TrainAside& train) {
  const std::vector<std::int64_t> sizes = sizes_for(job.layers, kMaxMeasured);
  const std::vector<Timing> alone = allreduce_timings(job, sizes, train);
  std::vector<Timing> busy = alone;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t sums = std::min(kStream, kMaxInStream / sizes[i]);
    if (sums > 1) {
      const Duration all = side_by_side(job, sizes[i], sums, train).median;
      const Duration further = (all - alone[i].median) / (sums - 1);
      busy[i].median = std::clamp(further, alone[i].median / 100, alone[i].median);
    }
  }
  return {fit_allreduce(alone), fit_allreduce(busy)};
}

}  // namespace sluice
