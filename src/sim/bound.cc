#include "sim/bound.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace sluice {
namespace {

// The parts of the bound; bytes are of parameters, as floats and without headers.
struct Limits {
  std::function<Duration(double bytes)> iteration;  // resources busy for all bytes of an iteration
  std::function<Duration(double bytes)> window;     // between a gradient and the next forward pass
};

// What is left of a byte on its way to where gradients are summed, and on the way back.
struct Packing {
  double there = 1;
  double back = 1;
  double arithmetic = 1;  // 0: not counted
};

// The number of entries of a sparse chunk is rounded, by a third of what it should be at most.
double least_ratio(const Strategy& strategy) {
  switch (strategy.codec) {
    case Codec::kNone:
      return 1;
    case Codec::kTruncate16:
      return 0.5;
    case Codec::kQuantise8:
      return 0.25;
    case Codec::kDgc:
      return 2 * (1 - strategy.dgc.sparsity) * 2 / 3;
  }
  fail_check("every codec has a ratio");
}

Packing packing_of(const Strategy& strategy) {
  const double ratio = least_ratio(strategy);
  const bool both = strategy.sparse() || strategy.exchange == Exchange::kAllReduce;
  return {ratio, both ? ratio : 1.0, strategy.coded() ? 0.0 : 1.0};
}

Duration wire_time(const Cluster& cluster, double bytes) {
  return from_ns(bytes * 8.0 / cluster.bandwidth_gbps);
}

Limits channel_limits(const Cluster& cluster, const Packing& packing) {
  const AllReduceCost cost = *cluster.allreduce;
  const auto time = [cost, sync = cluster.sync, packing](double bytes) {
    return cost.startup + sync + from_ns(packing.there * bytes * cost.ns_per_byte);
  };
  return {time, time};
}

Limits allreduce_limits(const Cluster& cluster, const Packing& packing) {
  const Topology& topology = cluster.topology;
  const auto hosts = static_cast<double>(topology.worker_hosts());
  const auto workers = static_cast<double>(topology.workers());
  const double share = (hosts - 1) / hosts * packing.there;
  const double work =
      packing.arithmetic * static_cast<double>(topology.workers_per_host()) *
      ((workers - 1) / workers * cluster.reduce_ns_per_byte + cluster.update_ns_per_byte) /
      cluster.server_threads;
  return {
      [&cluster, share, work](double bytes) {
        return std::max(wire_time(cluster, 2 * share * bytes), from_ns(work * bytes));
      },
      [&cluster, share](double bytes) { return wire_time(cluster, share * bytes) + cluster.sync; }};
}

Limits server_limits(const Cluster& cluster, const Packing& packing) {
  const Topology& topology = cluster.topology;
  const auto workers = static_cast<double>(topology.workers());
  const auto servers = static_cast<double>(topology.servers());
  const auto per_host = static_cast<double>(topology.workers_per_host());
  const bool apart = topology.hosts() > topology.servers();
  const double pushed = apart ? per_host : (workers - per_host) / servers;
  const double busiest =
      apart ? std::max(per_host, workers / servers) * std::max(packing.there, packing.back)
            : pushed * (packing.there + packing.back);
  const double push = pushed * packing.there;
  const double work = packing.arithmetic *
                      ((workers - 1) * cluster.reduce_ns_per_byte + cluster.update_ns_per_byte) /
                      (servers * cluster.server_threads);
  const Duration trip = apart ? 2 * cluster.latency : Duration{0};
  return {[&cluster, busiest, work](double bytes) {
            return std::max(wire_time(cluster, busiest * bytes), from_ns(work * bytes));
          },
          [&cluster, push, trip](double bytes) {
            return wire_time(cluster, push * bytes) + trip + cluster.sync;
          }};
}

Limits limits_of(const Cluster& cluster, const Strategy& strategy) {
  const Packing packing = packing_of(strategy);
  if (cluster.allreduce.has_value()) {
    return channel_limits(cluster, packing);
  }
  return strategy.exchange == Exchange::kAllReduce ? allreduce_limits(cluster, packing)
                                                   : server_limits(cluster, packing);
}

}  // namespace

Duration lower_bound(const Profile& profile, const Cluster& cluster, const Strategy& strategy) {
  const bool steps_together = strategy.algorithm == Algorithm::kBsp;
  Duration bound = profile.compute();
  if (!steps_together && strategy.algorithm != Algorithm::kPipe) {
    return bound;
  }
  const Limits limits = limits_of(cluster, strategy);
  Duration rest = profile.compute();  // forward and backward of this layer and those behind it
  double bytes = 0;                   // of the layers up to this one
  for (const LayerProfile& layer : profile.layers) {
    bytes += static_cast<double>(layer.params * kFloatBytes);
    if (bytes > 0 && steps_together) {
      bound = std::max(bound, rest + limits.window(bytes));
    }
    rest -= layer.forward + layer.backward;
  }
  return bytes > 0 ? std::max(bound, limits.iteration(bytes)) : bound;
}

}  // namespace sluice
