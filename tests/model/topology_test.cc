#include "model/topology.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace sluice {
namespace {

TEST(TopologyTest, PutsAServerBesideTheWorkersOfEveryHost) {
  const Topology topology(3, 2, 0);
  EXPECT_EQ(topology.hosts(), 3U);
  EXPECT_EQ(topology.workers(), 6U);
  EXPECT_EQ(topology.servers(), 3U);
  EXPECT_EQ(topology.host_of(topology.worker(1)), HostId(0));
  EXPECT_EQ(topology.host_of(topology.worker(4)), HostId(2));
  EXPECT_EQ(topology.server(1), NodeId(7));
  EXPECT_EQ(topology.host_of(topology.server(1)), HostId(1));
}

TEST(TopologyTest, GivesServersHostsOfTheirOwn) {
  const Topology topology(3, 1, 2);
  EXPECT_EQ(topology.hosts(), 5U);
  EXPECT_EQ(topology.servers(), 2U);
  EXPECT_EQ(topology.host_of(topology.server(0)), HostId(3));
  EXPECT_EQ(topology.host_of(topology.server(1)), HostId(4));
}

TEST(TopologyTest, GivesAHostSeveralServers) {
  const Topology apart(3, 1, 2, 1, 2);
  EXPECT_EQ(apart.hosts(), 5U);
  EXPECT_EQ(apart.server_hosts(), 2U);
  EXPECT_EQ(apart.servers(), 4U);
  EXPECT_EQ(apart.host_of(apart.server(1)), HostId(3));
  EXPECT_EQ(apart.host_of(apart.server(2)), HostId(4));
  const Topology beside(3, 1, 0, 1, 2);
  EXPECT_EQ(beside.servers(), 6U);
  EXPECT_EQ(beside.host_of(beside.server(5)), HostId(2));
}

// Servers may be on the machine of the workers, too.
TEST(TopologyTest, AMachineHasNoMoreWorkersThanThereAre) {
  const Topology topology(2, 3, 2, 4);
  EXPECT_TRUE(topology.on_one_machine());
  EXPECT_EQ(topology.workers_per_machine(), 6U);
}

RC_GTEST_PROP(TopologyProperty, EveryHostGetsItsShareOfNodes, ()) {
  const auto worker_hosts = *rc::gen::inRange<std::size_t>(1, 20);
  const auto per_host = *rc::gen::inRange<std::size_t>(1, 5);
  const auto apart = *rc::gen::inRange<std::size_t>(0, 5);
  const auto servers_per_host = *rc::gen::inRange<std::size_t>(1, 4);
  const Topology topology(worker_hosts, per_host, apart, 1, servers_per_host);

  std::vector<std::size_t> workers(topology.hosts());
  std::vector<std::size_t> servers(topology.hosts());
  for (std::size_t i = 0; i < topology.nodes(); ++i) {
    const NodeId node(i);
    ++(topology.is_worker(node) ? workers : servers).at(topology.host_of(node).index());
  }
  for (std::size_t host = 0; host < topology.hosts(); ++host) {
    std::vector<NodeId> there;
    for (std::size_t i = 0; i < topology.nodes(); ++i) {
      if (topology.host_of(NodeId(i)) == HostId(host)) {
        there.emplace_back(i);
      }
    }
    RC_ASSERT(topology.nodes_on(HostId(host)) == there);
    const bool has_workers = host < worker_hosts;
    RC_ASSERT(workers[host] == (has_workers ? per_host : 0));
    RC_ASSERT(servers[host] == (has_workers && apart > 0 ? 0U : servers_per_host));
  }
  for (std::size_t i = 0; i < topology.servers(); ++i) {
    RC_ASSERT(!topology.is_worker(topology.server(i)));
    RC_ASSERT(topology.server_index(topology.server(i)) == i);
  }
}

}  // namespace
}  // namespace sluice
