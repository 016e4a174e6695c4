#include "formats/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kSmallest = "hosts = 4\nbandwidth_gbps = 10\n";

std::string complaint(const std::string& text) {
  const auto cluster = parse_cluster(text, "c.toml");
  return cluster ? "" : cluster.error().message();
}

TEST(ClusterTest, HasTheDefaultsOfTheFormat) {
  const auto cluster = parse_cluster(kSmallest, "c.toml");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->topology.hosts(), 4U);
  EXPECT_EQ(cluster->topology.workers(), 4U);
  EXPECT_EQ(cluster->topology.servers(), 4U);
  EXPECT_EQ(cluster->bandwidth_gbps, 10);
  EXPECT_EQ(cluster->latency, from_us(50));
  EXPECT_EQ(cluster->reduce_ns_per_byte, 0.1);
  EXPECT_EQ(cluster->update_ns_per_byte, 0.1);
  EXPECT_EQ(cluster->server_threads, 1);
  EXPECT_EQ(cluster->header_bytes, 64);
  EXPECT_EQ(cluster->fragment_bytes, 0);
  EXPECT_EQ(cluster->sync, Duration(0));
  EXPECT_FALSE(cluster->allreduce.has_value());
}

TEST(ClusterTest, ReadsEveryKey) {
  const auto cluster = parse_cluster(
      "hosts = 2\nbandwidth_gbps = 1.5\nworkers_per_host = 3\nservers = 5\nlatency_us = 7\n"
      "reduce_ns_per_byte = 0\nupdate_ns_per_byte = 0.25\nserver_threads = 8\nheader_bytes = 0\n"
      "fragment_bytes = 65536\nsync_us = 1.5\n[allreduce]\nstartup_us = 2\nns_per_byte = 0.5\n",
      "c.toml");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->topology.workers(), 6U);
  EXPECT_EQ(cluster->topology.servers(), 5U);
  EXPECT_EQ(cluster->topology.hosts(), 7U);
  EXPECT_EQ(cluster->bandwidth_gbps, 1.5);
  EXPECT_EQ(cluster->latency, from_us(7));
  EXPECT_EQ(cluster->reduce_ns_per_byte, 0);
  EXPECT_EQ(cluster->update_ns_per_byte, 0.25);
  EXPECT_EQ(cluster->server_threads, 8);
  EXPECT_EQ(cluster->header_bytes, 0);
  EXPECT_EQ(cluster->fragment_bytes, 65536);
  EXPECT_EQ(cluster->sync, from_us(1.5));
  ASSERT_TRUE(cluster->allreduce.has_value());
  EXPECT_EQ(cluster->allreduce->startup, from_us(2));
  EXPECT_EQ(cluster->allreduce->ns_per_byte, 0.5);
}

TEST(ClusterTest, ServersMayStandBesideTheWorkers) {
  const auto cluster = parse_cluster(kSmallest + "servers = \"per-host\"\n", "c.toml");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->topology.hosts(), 4U);
  EXPECT_EQ(cluster->topology.servers(), 4U);
  EXPECT_THAT(
      complaint(kSmallest + "servers = \"per-hots\"\n"),
      StartsWith("c.toml: servers: is \"per-hots\", expected an integer from 1 to 1000000 or "
                 "per-host; did you mean per-host?"));
  EXPECT_THAT(complaint(kSmallest + "servers = 0\n"),
              StartsWith("c.toml: servers: is 0, expected"));
}

TEST(ClusterTest, ServersMayShareAHost) {
  const auto apart = parse_cluster(kSmallest + "servers = 6\nservers_per_host = 3\n", "c.toml");
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->topology.hosts(), 6U);
  EXPECT_EQ(apart->topology.servers(), 6U);
  const auto beside = parse_cluster(kSmallest + "servers_per_host = 3\n", "c.toml");
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->topology.hosts(), 4U);
  EXPECT_EQ(beside->topology.servers(), 12U);
  EXPECT_THAT(complaint(kSmallest + "servers = 5\nservers_per_host = 3\n"),
              StartsWith("c.toml: servers_per_host: 5 servers do not fill hosts of 3"));
  EXPECT_THAT(complaint(kSmallest + "servers_per_host = 900000\n"),
              StartsWith("c.toml: servers_per_host: 4 hosts come to 3600000 servers"));
}

TEST(ClusterTest, TheBandwidthMayBeAbsentWithAnAllReduce) {
  EXPECT_EQ(complaint("hosts = 2\n[allreduce]\nstartup_us = 0\nns_per_byte = 1\n"), "");
  EXPECT_THAT(complaint("hosts = 2\n"), StartsWith("c.toml: bandwidth_gbps: is missing"));
  EXPECT_THAT(complaint("bandwidth_gbps = 2\n"), StartsWith("c.toml: hosts: is missing"));
  EXPECT_THAT(complaint("hosts = 2\n[allreduce]\nstartup_us = 0\n"),
              StartsWith("c.toml: allreduce: ns_per_byte: is missing"));
  EXPECT_THAT(complaint("hosts = 2\nallreduce = 3\n"),
              HasSubstr("allreduce: is 3, expected a table"));
}

TEST(ClusterTest, UnknownKeysAreRefused) {
  EXPECT_THAT(complaint("hosts = 2\nbandwith_gbps = 10\n"),
              StartsWith("c.toml: bandwith_gbps: is not a known key"));
  EXPECT_THAT(complaint("hosts = 2\nbandwith_gbps = 10\n"), HasSubstr("mean bandwidth_gbps?"));
  EXPECT_THAT(complaint("hosts = 2\n[allreduce]\nstartup_us = 0\nns_per_byte = 1\nx = 1\n"),
              StartsWith("c.toml: allreduce: x: is not a known key"));
}

TEST(ClusterTest, WrongValuesAreRefused) {
  const auto with = [](const std::string& line) {
    return complaint("hosts = 4\nbandwidth_gbps = 10\n" + line + "\n");
  };
  EXPECT_THAT(with("latency_us = -1"), StartsWith("c.toml: latency_us: is -1, expected a number"));
  EXPECT_THAT(with("latency_us = nan"), StartsWith("c.toml: latency_us: is nan, expected"));
  EXPECT_THAT(with("latency_us = inf"), StartsWith("c.toml: latency_us: is inf, expected"));
  EXPECT_THAT(with("latency_us = 1e30"), StartsWith("c.toml: latency_us: is 1e+30, expected"));
  EXPECT_THAT(with("sync_us = '1'"), StartsWith("c.toml: sync_us: is \"1\", expected a number"));
  EXPECT_THAT(with("workers_per_host = 1.5"), HasSubstr("is 1.5, expected an integer"));
  EXPECT_THAT(with("server_threads = 0"), HasSubstr("is 0, expected an integer from 1"));
  EXPECT_THAT(with("header_bytes = -1"), HasSubstr("is -1, expected an integer from 0"));
  EXPECT_THAT(with("fragment_bytes = -1"), HasSubstr("is -1, expected an integer from 0"));
  EXPECT_THAT(with("workers_per_host = 300000"), StartsWith("c.toml: workers_per_host: 4 hosts"));
  EXPECT_THAT(complaint("hosts = 0\nbandwidth_gbps = 1\n"), StartsWith("c.toml: hosts: is 0"));
  EXPECT_THAT(complaint("hosts = 1\nbandwidth_gbps = 0\n"),
              StartsWith("c.toml: bandwidth_gbps: is 0"));
  EXPECT_THAT(complaint("hosts = 99999999999999999999\n"),
              StartsWith("c.toml: is not TOML: line 1"));
}

TEST(ClusterTest, WireTimeIsBitsOverRate) {
  Cluster cluster;
  cluster.bandwidth_gbps = 10;
  EXPECT_EQ(cluster.wire_time(1250), from_us(1));
  EXPECT_EQ(cluster.wire_time(0), Duration(0));
  cluster.bandwidth_gbps = 3;
  EXPECT_EQ(cluster.wire_time(1), Duration(2667));
}

TEST(ClusterTest, ReadsFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_cluster(folder.write("c.toml", kSmallest))->topology.hosts(), 4U);
  EXPECT_THAT(read_cluster(folder.path() / "none").error().message(), HasSubstr("cannot be read"));
}

RC_GTEST_PROP(ClusterProperty, AnyBytesGiveAClusterOrOneLine, (std::string bytes)) {
  RC_ASSERT(complaint(bytes).find('\n') == std::string::npos);
}

RC_GTEST_PROP(ClusterProperty, AnyChangeOfAByteGivesAClusterOrOneLine, (char byte)) {
  std::string text = kSmallest + "servers = \"per-host\"\n[allreduce]\nstartup_us = 1\n";
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = byte;
  RC_ASSERT(complaint(text).find('\n') == std::string::npos);
}

RC_GTEST_PROP(ClusterTest, ComesBackFromItsToml, ()) {
  const auto number = [](int max) { return *rc::gen::inRange(1, max) / 1024.0; };
  const auto count = [](std::size_t min) { return *rc::gen::inRange<std::size_t>(min, 9); };
  Cluster cluster;
  cluster.topology = Topology(count(1), count(1), count(0), 1, count(1));
  cluster.bandwidth_gbps = number(100'000);
  cluster.latency = from_us(number(1'000'000));
  cluster.reduce_ns_per_byte = number(5000);
  cluster.update_ns_per_byte = number(5000);
  cluster.code_ns_per_byte = 1e-7 * number(5000);
  cluster.server_threads = static_cast<int>(count(1));
  cluster.header_bytes = *rc::gen::inRange(0, 1000);
  cluster.fragment_bytes = *rc::gen::inRange(0, 1000);
  cluster.sync = from_us(number(5000));
  cluster.ingress_gbps = number(100'000);
  cluster.cores = number(100'000);
  cluster.compute_cores = number(100'000);
  cluster.message_threads = *rc::gen::inRange(1, 3);
  cluster.sending = {from_us(number(5000)), number(5000)};
  cluster.receiving = {from_us(number(5000)), number(5000)};
  if (*rc::gen::arbitrary<bool>()) {
    cluster.allreduce = AllReduceCost{from_us(number(50'000)), number(5000)};
    cluster.bandwidth_gbps *= *rc::gen::inRange(0, 2);
  }
  const auto read = parse_cluster(to_toml(cluster), "written");
  RC_ASSERT(read);
  RC_ASSERT(read->topology.worker_hosts() == cluster.topology.worker_hosts());
  RC_ASSERT(read->topology.workers_per_host() == cluster.topology.workers_per_host());
  RC_ASSERT(read->topology.hosts() == cluster.topology.hosts());
  RC_ASSERT(read->topology.servers() == cluster.topology.servers());
  RC_ASSERT(read->bandwidth_gbps == cluster.bandwidth_gbps);
  RC_ASSERT(read->latency == cluster.latency);
  RC_ASSERT(read->reduce_ns_per_byte == cluster.reduce_ns_per_byte);
  RC_ASSERT(read->update_ns_per_byte == cluster.update_ns_per_byte);
  RC_ASSERT(read->code_ns_per_byte == cluster.code_ns_per_byte);
  RC_ASSERT(read->server_threads == cluster.server_threads);
  RC_ASSERT(read->header_bytes == cluster.header_bytes);
  RC_ASSERT(read->fragment_bytes == cluster.fragment_bytes);
  RC_ASSERT(read->sync == cluster.sync);
  RC_ASSERT(read->ingress_gbps == cluster.ingress_gbps);
  RC_ASSERT(read->cores == cluster.cores);
  RC_ASSERT(read->compute_cores == cluster.compute_cores);
  RC_ASSERT(read->message_threads == cluster.message_threads);
  RC_ASSERT(read->sending == cluster.sending);
  RC_ASSERT(read->receiving == cluster.receiving);
  RC_ASSERT(read->allreduce.has_value() == cluster.allreduce.has_value());
  if (read->allreduce) {
    RC_ASSERT(read->allreduce->startup == cluster.allreduce->startup);
    RC_ASSERT(read->allreduce->ns_per_byte == cluster.allreduce->ns_per_byte);
  }
}

// The cost model of MG-WFBP's authors: t = 2 n alpha + 2(n-1)/n M beta + (n-1)/n M gamma.
TEST(ClusterTest, ARingsCostFollowsTheNumberOfWorkers) {
  const std::string table =
      "[allreduce]\nalpha_us = 45.25\nbeta_ns_per_byte = 2\ngamma_ns_per_byte = 3\n";
  const auto four = parse_cluster("hosts = 4\n" + table, "c.toml");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->allreduce->startup, from_us(362));
  EXPECT_DOUBLE_EQ(four->allreduce->ns_per_byte, 0.75 * (2 * 2 + 3));
  const auto eight = parse_cluster("hosts = 4\nworkers_per_host = 2\n" + table, "c.toml");
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->allreduce->startup, from_us(724));
  EXPECT_THAT(complaint("hosts = 4\n[allreduce]\nalpha_us = 1\nns_per_byte = 2\n"),
              StartsWith("c.toml: allreduce: ns_per_byte: "));
  EXPECT_THAT(complaint("hosts = 4\n[allreduce]\nalpha_us = 1\nbeta_ns_per_byte = 2\n"),
              StartsWith("c.toml: allreduce: gamma_ns_per_byte: "));
}

TEST(ClusterTest, HostsMayDiffer) {
  const auto cluster = parse_cluster(kSmallest +
                                         "jitter = 0.05\nhosts_per_nic = 2\n"
                                         "[[host]]\nindex = 2\nbandwidth_gbps = 1\n"
                                         "[[host]]\nindex = 0\nlatency_us = 7\nspeed = 0.5\n"
                                         "[racks]\nhosts = 2\nuplink_gbps = 3\n",
                                     "c.toml");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(cluster->jitter, 0.05);
  EXPECT_EQ(cluster->hosts_per_nic, 2U);
  EXPECT_EQ(cluster->racks, (Racks{.hosts = 2, .uplink_gbps = 3}));
  EXPECT_THAT(cluster->special_hosts,
              ElementsAre(SpecialHost{.index = 2, .bandwidth_gbps = 1},
                          SpecialHost{.index = 0, .latency = from_us(7), .speed = 0.5}));
  EXPECT_EQ(cluster->slowdown(0), 2);
  EXPECT_EQ(cluster->slowdown(1), 1);
  const auto written = parse_cluster(to_toml(*cluster), "written");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->special_hosts, cluster->special_hosts);
  EXPECT_EQ(written->racks, cluster->racks);
  EXPECT_EQ(written->jitter, cluster->jitter);
  EXPECT_EQ(written->hosts_per_nic, cluster->hosts_per_nic);
}

TEST(ClusterTest, ErrorsInTablesOfHostsAndRacksAreNamed) {
  const auto with = [](const std::string& text) { return complaint(kSmallest + text); };
  EXPECT_THAT(with("[[host]]\nspeed = 2\n"), StartsWith("c.toml: host[0]: index: "));
  EXPECT_THAT(with("[[host]]\nindex = 4\n"),
              StartsWith("c.toml: host[0]: index: is 4, expected an integer from 0 to 3"));
  EXPECT_THAT(with("[[host]]\nindex = 1\n[[host]]\nindex = 1\n"),
              StartsWith("c.toml: host[1]: index: host 1 has two tables"));
  EXPECT_THAT(with("[[host]]\nindex = 1\nspeeed = 1\n"), StartsWith("c.toml: host[0]: speeed: "));
  EXPECT_THAT(with("[[host]]\nindex = 1\nspeed = 0\n"), StartsWith("c.toml: host[0]: speed: is 0"));
  EXPECT_THAT(with("host = [1]\n"), StartsWith("c.toml: host[0]: expected a table"));
  EXPECT_THAT(with("[racks]\nhosts = 2\n"), StartsWith("c.toml: racks: uplink_gbps: "));
  EXPECT_THAT(with("jitter = -1\n"), StartsWith("c.toml: jitter: is -1"));
  EXPECT_THAT(with("hosts_per_nic = 0\n"), StartsWith("c.toml: hosts_per_nic: is 0"));
}

}  // namespace
}  // namespace sluice
