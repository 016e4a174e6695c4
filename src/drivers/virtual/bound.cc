#include "drivers/virtual/bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "codecs/size.h"
#include "drivers/virtual/compute_pace.h"

namespace sluice {
namespace {

// Parameters of the first layers, in bytes of floats and without headers.
struct Prefix {
  double bytes = 0;
  std::vector<double> by_host;  // of those that have servers
};

// The parts of the bound.
struct Limits {
  std::function<Duration(double bytes)> iteration;  // how long resources are busy with its bytes
  std::function<Duration(const Prefix& prefix)> window;  // from gradients to the next forward pass
};

// The share of a byte that is left after packing, on the way to the server and on the way back.
struct Packing {
  double there = 1;
  double back = 1;
  double arithmetic = 1;  // 0: not counted
};

double ratio_of(const Strategy& strategy, std::int64_t params) {
  return static_cast<double>(coded_size(strategy, params, 1)) /
         static_cast<double>(params * kFloatBytes);
}

// Codec top-k takes least for whole blocks, or for what it sends all of.
// The number of entries of a sparse chunk is rounded, by at most a third of the exact number.
double min_ratio(const Strategy& strategy) {
  if (strategy.sparse()) {
    return 2 * (1 - strategy.dgc.sparsity) * 2 / 3;
  }
  if (strategy.gathered()) {
    return std::min(ratio_of(strategy, strategy.top_k.block),
                    ratio_of(strategy, strategy.top_k.kept));
  }
  return static_cast<double>(traits_of(strategy.codec).bits_per_value) / (8 * kFloatBytes);
}

Packing packing_of(const Strategy& strategy) {
  const double ratio = min_ratio(strategy);
  const bool both = strategy.servers_pack() || strategy.exchange == Exchange::kAllReduce;
  return {ratio, both ? ratio : 1.0, strategy.coded() ? 0.0 : 1.0};
}

Duration egress_time(const Cluster& cluster, double bytes) {
  return from_ns(bytes * 8.0 / cluster.bandwidth_gbps);
}

Duration ingress_time(const Cluster& cluster, double bytes) {
  return from_ns(bytes * 8.0 /
                 (cluster.ingress_gbps > 0 ? cluster.ingress_gbps : cluster.bandwidth_gbps));
}

// Where as much must leave a host as must come in.
Duration wire_time(const Cluster& cluster, double bytes) {
  return std::max(egress_time(cluster, bytes), ingress_time(cluster, bytes));
}

// The busiest interface and the arithmetic of a host, by what they do for each byte.
auto resource_limit(const Cluster& cluster, double out, double in, double work_ns) {
  return [&cluster, out, in, work_ns](double bytes) {
    return std::max({egress_time(cluster, out * bytes), ingress_time(cluster, in * bytes),
                     from_ns(work_ns * bytes)});
  };
}

Limits channel_limits(const Cluster& cluster, const Packing& packing) {
  const AllReduceCost cost = *cluster.allreduce;
  const auto time = [cost, sync = cluster.sync, packing](double bytes) {
    return cost.startup + sync + from_ns(packing.there * bytes * cost.ns_per_byte);
  };
  return {time, [time](const Prefix& prefix) { return time(prefix.bytes); }};
}

// The nodes that push, or take part in sums: every worker, or one per host.
struct Pushers {
  Pushers(const Topology& topology, const Strategy& strategy)
      : of_host(strategy.local_aggregation ? 1.0
                                           : static_cast<double>(topology.workers_per_host())),
        all(of_host * static_cast<double>(topology.worker_hosts())),
        elsewhere(all - of_host) {}

  double of_host;
  double all;
  double elsewhere;  // than on a given host
};

// Each host needs the codes of all ranks that are elsewhere.
Limits gather_limits(const Cluster& cluster, const Pushers& pushers, const Packing& packing) {
  const double in = pushers.elsewhere * packing.there;
  return {resource_limit(cluster, 0, in, 0), [&cluster, in](const Prefix& prefix) {
            return ingress_time(cluster, in * prefix.bytes) + cluster.sync;
          }};
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
  return {resource_limit(cluster, 2 * share, 2 * share, work),
          [&cluster, share](const Prefix& prefix) {
            return wire_time(cluster, share * prefix.bytes) + cluster.sync;
          }};
}

double server_work(const Cluster& cluster, const Pushers& pushers, const Packing& packing) {
  const double all = (pushers.all - 1) * cluster.reduce_ns_per_byte + cluster.update_ns_per_byte;
  return packing.arithmetic * all /
         static_cast<double>(cluster.topology.server_hosts() *
                             static_cast<std::size_t>(cluster.server_threads));
}

// Servers on hosts of their own.
Limits apart_limits(const Cluster& cluster, const Pushers& pushers, const Packing& packing) {
  const double per_host = pushers.all / static_cast<double>(cluster.topology.server_hosts());
  const double out = std::max(pushers.of_host * packing.there, per_host * packing.back);
  const double in = std::max(pushers.of_host * packing.back, per_host * packing.there);
  return {resource_limit(cluster, out, in, server_work(cluster, pushers, packing)),
          [&cluster, pushers, packing](const Prefix& prefix) {
            const double pushed = pushers.of_host * packing.there * prefix.bytes;
            const double gathered =
                pushers.all * packing.there * *std::ranges::max_element(prefix.by_host);
            const double received = packing.back * prefix.bytes;
            return std::max(egress_time(cluster, pushed),
                            ingress_time(cluster, std::max(gathered, received))) +
                   2 * cluster.latency + cluster.sync;
          }};
}

// A server on every host. Before a worker can go on, its host has received what its server collects
// and what the worker needs from the other servers.
Limits beside_limits(const Cluster& cluster, const Pushers& pushers, const Packing& packing) {
  const double busiest = pushers.elsewhere / static_cast<double>(cluster.topology.server_hosts()) *
                         (packing.there + packing.back);
  return {resource_limit(cluster, busiest, busiest, server_work(cluster, pushers, packing)),
          [&cluster, pushers, packing](const Prefix& prefix) {
            const double push = pushers.elsewhere * packing.there;
            double max = 0;
            double min = std::numeric_limits<double>::infinity();
            for (const double share : prefix.by_host) {
              max = std::max(max, push * share);
              min = std::min(min, push * share + packing.back * (prefix.bytes - share));
            }
            return ingress_time(cluster, std::max(max, min)) + cluster.sync;
          }};
}

Limits limits_of(const Cluster& cluster, const Strategy& strategy) {
  const Packing packing = packing_of(strategy);
  if (cluster.allreduce.has_value()) {
    return channel_limits(cluster, packing);
  }
  const Pushers pushers(cluster.topology, strategy);
  if (strategy.gathered()) {
    return gather_limits(cluster, pushers, packing);
  }
  if (strategy.exchange == Exchange::kAllReduce) {
    return allreduce_limits(cluster, packing);
  }
  return cluster.topology.servers_apart() ? apart_limits(cluster, pushers, packing)
                                          : beside_limits(cluster, pushers, packing);
}

void add_layer(const Layer& layer, LayerId id, const ChunkMap& chunks, std::size_t servers_per_host,
               Prefix& prefix) {
  for (const ChunkId chunk : chunks.chunks_of(id)) {
    const Range& range = chunks[chunk].range;
    if (chunks[chunk].factor == Factor::kRest) {
      continue;
    }
    const auto bytes = static_cast<double>(
        (std::min(range.end, layer.range.end) - std::max(range.begin, layer.range.begin)) *
        kFloatBytes);
    prefix.bytes += bytes;
    prefix.by_host[chunks[chunk].server / servers_per_host] += bytes;
  }
}

// The network at its best: every link like the fastest one.
Cluster best_of(const Cluster& cluster) {
  Cluster best = cluster;
  for (const SpecialHost& host : cluster.special_hosts) {
    best.bandwidth_gbps = std::max(best.bandwidth_gbps, host.bandwidth_gbps);
    best.ingress_gbps =
        best.ingress_gbps == 0 ? 0 : std::max(best.ingress_gbps, host.bandwidth_gbps);
    best.latency = std::min(best.latency, host.latency.value_or(best.latency));
  }
  return best;
}

Duration at_best(Duration compute, const Cluster& cluster) {
  const double factor = ComputePace::min_slowdown(cluster);
  return factor == 1 ? compute : from_us(to_us(compute) * factor);
}

// What an iteration in lock step takes at least.
struct Bounds {
  Duration waiting{0};  // of the worker: compute, and what it waits for
  Duration busy{0};     // of links and processors with all that is exchanged
};

Bounds bounds_of(const Profile& profile, const Cluster& cluster, const Strategy& strategy,
                 const ChunkMap& chunks) {
  const Cluster best = best_of(cluster);
  const Limits limits = limits_of(best, strategy);
  const std::vector<Layer> layers = profile.layout();
  Bounds bounds{.waiting = at_best(profile.compute(), cluster)};
  Duration rest = profile.compute();  // forward and backward of this layer and later ones
  Prefix prefix{0, std::vector<double>(cluster.topology.server_hosts())};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    add_layer(layers[l], LayerId(l), chunks, cluster.topology.servers_per_host(), prefix);
    if (prefix.bytes > 0) {
      bounds.waiting = std::max(bounds.waiting, at_best(rest, cluster) + limits.window(prefix));
    }
    rest -= profile.layers[l].forward + profile.layers[l].backward;
  }
  if (prefix.bytes > 0) {
    bounds.busy = limits.iteration(prefix.bytes);
  }
  return bounds;
}

// One iteration in `every` exchanges what every iteration of algorithm bsp does, unless exchanges
// run behind later steps or take turns.
Duration with_cadence(Duration compute, const Bounds& bounds, const Cadence& cadence) {
  const bool waits = cadence.delay == 0 && cadence.fragments == 1;
  const Duration steps = (cadence.every - 1) * compute + (waits ? bounds.waiting : compute);
  return std::max(steps, bounds.busy) / cadence.every;
}

// If each worker has a host and a partner, every host sends and receives an outer gradient and the
// global parameters once in `every` iterations. Who is late finds its partner's share there, so
// nobody need wait for it.
Duration pairs_bound(const Profile& profile, const Cluster& cluster, Duration compute,
                     const Cadence& cadence) {
  const Topology& topology = cluster.topology;
  if (cluster.allreduce || topology.workers_per_host() > 1 || topology.workers() % 2 > 0) {
    return compute;
  }
  const auto bytes = static_cast<double>(2 * total_params(profile.layout()) * kFloatBytes);
  return std::max(cadence.every * compute, wire_time(best_of(cluster), bytes)) / cadence.every;
}

}  // namespace

Duration lower_bound(const Profile& profile, const Cluster& cluster, const Strategy& strategy,
                     const ChunkMap& chunks) {
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  const bool local_steps = algorithm.sends == Sends::kOuterGradients;
  const Duration compute = at_best(profile.compute(), cluster);
  // Between hosts that share an interface, nothing is known to take time.
  if (!(algorithm.replicas_agree() || local_steps) || cluster.hosts_per_nic > 1) {
    return compute;
  }
  if (strategy.exchange == Exchange::kGossip) {
    return pairs_bound(profile, cluster, compute, strategy.cadence);
  }
  const Bounds bounds = bounds_of(profile, cluster, strategy, chunks);
  if (local_steps) {
    return with_cadence(compute, bounds, strategy.cadence);
  }
  return std::max(algorithm.coupling == Coupling::kLockStep ? bounds.waiting : compute,
                  bounds.busy);
}

}  // namespace sluice
