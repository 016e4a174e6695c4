#include "algorithms/assembly.h"

#include <gtest/gtest.h>

#include <utility>

#include "algorithms/presets.h"

namespace sluice {
namespace {

Strategy assembled(const Topology& topology, const Strategy& strategy) {
  Job job;
  job.layers = lay_out({"sum"}, {1'000});
  job.topology = topology;
  job.strategy = strategy;
  return assemble(std::move(job)).job.strategy;
}

Strategy usual() { return find_preset("wfbp")->strategy; }

TEST(AssemblyTest, HopsAreLongerAmongProcessesOfOneMachine) {
  const Strategy strategy = assembled(Topology(4, 1, 0, 4), usual());
  EXPECT_GT(strategy.segment_params, usual().segment_params);
  EXPECT_GE(strategy.peer_credit, 4 * strategy.segment_params * kFloatBytes)
      << "several hops are under way at a time";
}

TEST(AssemblyTest, HopsStayShortBetweenMachines) {
  for (const Topology& topology : {Topology(4, 1, 0), Topology(4, 1, 0, 2)}) {
    const Strategy strategy = assembled(topology, usual());
    EXPECT_EQ(strategy.segment_params, usual().segment_params);
    EXPECT_EQ(strategy.peer_credit, usual().peer_credit);
  }
}

TEST(AssemblyTest, WhatTheUserSetCountsOnOneMachineToo) {
  Strategy asked = usual();
  asked.segment_params = 9;
  asked.peer_credit = 10;
  const Strategy strategy = assembled(Topology(4, 1, 0, 4), asked);
  EXPECT_EQ(strategy.segment_params, 9);
  EXPECT_EQ(strategy.peer_credit, 10);
}

}  // namespace
}  // namespace sluice
