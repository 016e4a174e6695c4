#include "planner/allreduce_cost.h"

#include <algorithm>

#include "base/check.h"
#include "codecs/size.h"
#include "collectives/cost.h"
#include "model/aggregation_groups.h"
#include "nodes/allreduce_worker.h"
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

// The time of the hops and of the arithmetic at both ends, if `params` parameters take `sent` bytes
// on the wire. Packing counts once at each end; at the hops it hides behind the transfer.
Duration network_time(const Job& job, const Cluster& cluster, std::int64_t params, Bytes sent) {
  const double ns_per_byte =
      cluster.update_ns_per_byte + (job.strategy.coded() ? 2 * cluster.code_ns_per_byte : 0);
  return collective_cost(collective_for(job, params), AggregationGroups(job).size(), job.link)
             .time(sent) +
         from_ns(static_cast<double>(params * kFloatBytes) * ns_per_byte);
}

// Enough to saturate the link: beyond it, time is proportional to size.
constexpr std::int64_t kMaxMeasured = 4'000'000;
constexpr Iteration kIterations = 8;
// Small sums are short and vary most, so more of them are measured.
constexpr std::int64_t kManyParams = 1 << 16;
constexpr Iteration kShortIterations = 24;

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

AllReduceCost simulated_allreduce(const Job& job, const Cluster& cluster) {
  if (cluster.allreduce.has_value() && !job.strategy.coded()) {
    return {cluster.allreduce->startup + cluster.sync, cluster.allreduce->ns_per_byte};
  }
  std::vector<Timing> samples;
  for (const std::int64_t params : sizes_for(job.layers, total_params(job.layers))) {
    const Bytes sent = coded_size(job.strategy, params, 1);
    const Bytes bytes = params * kFloatBytes;
    const Duration sum = cluster.allreduce ? cluster.allreduce->time(sent)
                                           : network_time(job, cluster, params, sent);
    samples.push_back({bytes, sum + cluster.sync});
  }
  return fit_allreduce(samples);
}

std::vector<Timing> allreduce_timings(const Job& job, std::span<const std::int64_t> sizes,
                                      const TrainAside& train) {
  std::vector<Timing> timings;
  for (const std::int64_t params : sizes) {
    Job alone = job;
    alone.layers = lay_out({"sum"}, {params});
    alone.strategy.partition = Partition::kWhole;
    alone.groups = {};
    alone.first = 0;
    LayerTimes times(job.topology.workers(), 1);
    train(assemble(std::move(alone)), params > kManyParams ? kIterations : kShortIterations, times);
    timings.push_back(timing_of(params * kFloatBytes, times.iterations()));
  }
  return timings;
}

AllReduceCost measured_allreduce(const Job& job, const TrainAside& train) {
  return fit_allreduce(allreduce_timings(job, sizes_for(job.layers, kMaxMeasured), train));
}

}  // namespace sluice
