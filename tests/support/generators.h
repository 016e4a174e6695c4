#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "model/strategy.h"
#include "support/simulated.h"

namespace sluice::testing {

struct World {
  Profile profile;
  Cluster cluster;
};

inline std::ostream& operator<<(std::ostream& out, const World& world) {
  out << "layers";
  for (const auto& layer : world.profile.layers) {
    out << " (" << layer.params << ", " << to_us(layer.forward) << ", " << to_us(layer.backward)
        << ")";
  }
  const Topology& t = world.cluster.topology;
  return out << "; workers " << t.workers() << ", per host " << t.workers_per_host() << ", hosts "
             << t.hosts() << ", servers " << t.servers() << ", Gb/s "
             << world.cluster.bandwidth_gbps << ", latency us " << to_us(world.cluster.latency)
             << ", threads " << world.cluster.server_threads;
}

inline rc::Gen<std::int64_t> between(std::int64_t low, std::int64_t high) {
  return rc::gen::inRange<std::int64_t>(low, high + 1);
}

inline void charge_processors(Cluster& cluster) {
  const auto number = [](std::int64_t max) { return static_cast<double>(*between(0, max)) / 8; };
  cluster.cores = number(24);
  cluster.compute_cores = number(16);
  cluster.sending = {from_us(number(40)), number(8)};
  cluster.receiving = {from_us(number(40)), number(8)};
}

inline World any_world() {
  World world;
  world.profile.name = "generated";
  const auto layers = *between(1, 8);
  for (std::int64_t l = 0; l < layers; ++l) {
    const bool bare = *rc::gen::weightedElement<bool>({{6, false}, {1, true}});
    world.profile.layers.push_back({"L" + std::to_string(l), bare ? 0 : *between(1, 4000),
                                    from_us(static_cast<double>(*between(0, 50))),
                                    from_us(static_cast<double>(*between(0, 100)))});
  }
  world.cluster.topology = Topology(
      static_cast<std::size_t>(*between(1, 5)), static_cast<std::size_t>(*between(1, 2)),
      static_cast<std::size_t>(*rc::gen::weightedElement<std::int64_t>({{3, 0}, {1, 1}, {1, 2}})),
      1, static_cast<std::size_t>(*rc::gen::weightedElement<std::int64_t>({{3, 1}, {1, 2}})));
  world.cluster.bandwidth_gbps = *rc::gen::element(0.05, 0.3, 1.0, 4.0, 25.0);
  world.cluster.latency = from_us(static_cast<double>(*between(0, 60)));
  world.cluster.server_threads = static_cast<int>(*between(1, 3));
  world.cluster.fragment_bytes = *rc::gen::element(0, 0, 100, 1000);
  world.cluster.ingress_gbps = *rc::gen::element(0.0, 0.0, 0.1, 2.0);
  if (*rc::gen::arbitrary<bool>()) {
    charge_processors(world.cluster);
  }
  return world;
}

inline Strategy any_strategy() {
  Strategy strategy;
  strategy.exchange =
      *rc::gen::element(Exchange::kBroadcast, Exchange::kPullAfterNotify, Exchange::kAllReduce);
  strategy.partition =
      strategy.exchange == Exchange::kAllReduce
          ? *rc::gen::element(Partition::kLayer, Partition::kWhole, Partition::kSlice)
          : *rc::gen::element(Partition::kLayer, Partition::kWhole, Partition::kKvstore,
                              Partition::kSlice);
  strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority);
  strategy.slice_params = *between(50, 2000);
  strategy.join_params = *rc::gen::element<std::int64_t>(0, 40, 700, 5000);
  strategy.kvstore_split_params = *between(100, 3000);
  strategy.credit = *between(1, 10'000);
  strategy.peer_credit = *between(1, 10'000);
  strategy.seed = static_cast<std::uint64_t>(*between(0, 1000));
  return strategy;
}

}  // namespace sluice::testing
