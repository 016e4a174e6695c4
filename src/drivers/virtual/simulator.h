#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "learners/learner.h"
#include "optimizers/update_rule.h"
#include "partition/chunk_map.h"
#include "protocol/observer.h"
#include "protocol/protocol.h"

namespace sluice {

// Real gradients in virtual time: the clock is the simulator's, the numbers are the learners'.
struct VirtualNumbers {
  std::span<const std::unique_ptr<Learner>> learners;  // by rank
  const ChunkMap* chunks = nullptr;
  UpdateRule rule;
  Strategy strategy;
};

struct Simulation {
  const Profile& profile;
  const Cluster& cluster;
  std::span<Protocol* const> hosts;
  Iteration iterations = 10;
  Order channel_order = Order::kFifo;  // of the cluster's all-reduce channel, if it has one
  Observer* observer = nullptr;
  const VirtualNumbers* numbers = nullptr;
  // By worker: factor on its compute times, besides the cluster's; empty: all alike.
  std::vector<double> slowdowns = {};
  std::uint64_t seed = 1;  // of the cluster's jitter
};

struct SimulationResult {
  std::vector<Time> starts;  // of each iteration's forward pass on the last worker; one more than
                             // iterations, the last being the start of what would come next
  Time end{0};
  std::int64_t messages = 0;
  Bytes bytes = 0;           // on the wire, headers included
  Duration egress_busy{0};   // mean over the hosts
  Duration ingress_busy{0};  // mean over the hosts
  Duration channel_busy{0};  // of the cluster's all-reduce channel, if it has one
  std::int64_t channel_overtakings = 0;
  std::uint64_t events = 0;

  // Start of forward to start of forward, over the second half of the run.
  Duration iteration_time() const;
};

// Runs the protocol of every host in virtual time. Equal input gives equal results.
SimulationResult simulate(const Simulation& simulation);

}  // namespace sluice
