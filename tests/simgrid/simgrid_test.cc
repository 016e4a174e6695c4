// Holds the simulator against SimGrid, on jobs whose physics both have: see docs/simulator.md.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "nodes/presets.h"
#include "simgrid/simgrid_run.h"
#include "support/simulated.h"

namespace sluice {
namespace {

constexpr Iteration kIterations = 3;

Cluster cluster_for_simgrid(std::size_t hosts, std::size_t servers = 0) {
  Cluster cluster;
  cluster.topology = Topology(hosts, 1, servers);
  cluster.bandwidth_gbps = *rc::gen::element(0.5, 1.0, 4.0, 10.0, 25.0);
  cluster.latency = from_us(*rc::gen::inRange(0, 500));
  cluster.reduce_ns_per_byte = *rc::gen::element(0.0, 0.1, 0.5);
  return cluster;
}

std::vector<std::int64_t> generated_layers(std::size_t most) {
  const auto layers = *rc::gen::inRange<std::size_t>(1, most + 1);
  return *rc::gen::container<std::vector<std::int64_t>>(
      layers, rc::gen::inRange<std::int64_t>(10'000, 2'000'000));
}

Profile generated_profile(std::size_t layers) {
  return testing::profile_of(generated_layers(layers), *rc::gen::inRange(0, 2000),
                             *rc::gen::inRange(0, 4000));
}

// Both begin every iteration at the same time, within 1 % of the time that has passed.
void agree(const Profile& profile, const Cluster& cluster, const Strategy& strategy) {
  const Job job = testing::job_for(profile, cluster, strategy);
  const auto ours = testing::run_simulated(profile, cluster, job, kIterations).result.starts;
  const Assembly assembly = assemble(job);
  const auto theirs = testing::run_in_simgrid({.profile = profile,
                                               .cluster = cluster,
                                               .hosts = assembly.protocols,
                                               .iterations = kIterations});
  for (std::size_t i = 1; i < theirs.size(); ++i) {
    const double our_time = to_us(ours[i]) / 1e6;
    RC_LOG() << "iteration " << i << " begins after " << our_time << " s, in SimGrid after "
             << theirs[i] << " s";
    RC_ASSERT(our_time >= 0.99 * theirs[i]);
    RC_ASSERT(our_time <= 1.01 * theirs[i]);
  }
}

Strategy preset_strategy(const char* preset) { return find_preset(preset)->strategy; }

// In a ring nobody receives from two at a time. With several layers or segments, messages of two
// sums become ready at the same moment, and the two simulators need not send the same one first.
RC_GTEST_PROP(SimGridTest, AgreesOnRings, ()) {
  Strategy strategy = preset_strategy("wfbp");
  strategy.collective = Collective::kRing;
  strategy.segment_params = 0;
  agree(generated_profile(1), cluster_for_simgrid(*rc::gen::inRange<std::size_t>(2, 9)), strategy);
}

// One sum at a time, in one segment: two that exchange send to each other alone.
RC_GTEST_PROP(SimGridTest, AgreesOnHalvingAndDoubling, ()) {
  Strategy strategy = preset_strategy("wfbp");
  strategy.collective =
      *rc::gen::element(Collective::kHalvingDoubling, Collective::kRecursiveDoubling);
  strategy.segment_params = 0;
  agree(generated_profile(1), cluster_for_simgrid(*rc::gen::element<std::size_t>(2, 4, 8)),
        strategy);
}

// One sum at a time: of those that send to one receiver, the last is done when all are.
RC_GTEST_PROP(SimGridTest, AgreesOnDirectSumsAndTrees, ()) {
  Strategy strategy = preset_strategy("wfbp");
  strategy.collective = *rc::gen::element(Collective::kDirect, Collective::kBinaryTree);
  strategy.segment_params = 0;
  Cluster cluster = cluster_for_simgrid(*rc::gen::inRange<std::size_t>(2, 9));
  cluster.reduce_ns_per_byte = 0;
  agree(generated_profile(1), cluster, strategy);
}

// A server apart that gets the gradients of all workers at once and answers one after the other.
RC_GTEST_PROP(SimGridTest, AgreesOnAServerApart, ()) {
  Cluster cluster = cluster_for_simgrid(*rc::gen::inRange<std::size_t>(1, 9), 1);
  cluster.reduce_ns_per_byte = 0;
  agree(generated_profile(1), cluster, preset_strategy("bsp"));
}

// Between two hosts every link has one sender, whatever they exchange.
RC_GTEST_PROP(SimGridTest, AgreesOnAllThatTwoHostsExchange, ()) {
  Strategy strategy = preset_strategy(
      *rc::gen::element("kvstore", "slicing", "p3", "bsp", "asp", "ssp", "wfbp", "p3-allreduce"));
  agree(generated_profile(5), cluster_for_simgrid(2), strategy);
}

}  // namespace
}  // namespace sluice
