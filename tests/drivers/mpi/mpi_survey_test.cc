// Runs the commands that measure the network: between processes of this machine, and in labs, which
// need root.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/cluster.h"
#include "lab/lab.h"
#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SurveyTest : public MpiJobTest {
 protected:
  Outcome sluice(int processes, const std::string& arguments) const {
    return mpirun(processes, "'" SLUICE_BINARY "' " + arguments, folder_);
  }
};

TEST_F(SurveyTest, EveryPairIsMeasuredBothWays) {
  for (const std::size_t processes : {2U, 4U}) {
    const Outcome outcome = sluice(static_cast<int>(processes), "doctor --net --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report.at("ranks").size(), processes);
    EXPECT_EQ(report.at("links").size(), processes * (processes - 1));
    EXPECT_TRUE(report.at("silent").empty());
    for (const json& link : report.at("links")) {
      EXPECT_GT(link.at("latency_us"), 0);
      EXPECT_GT(link.at("gbps"), 0);
    }
  }
}

TEST_F(SurveyTest, ATableHasALineForEveryPair) {
  const Outcome outcome = sluice(3, "doctor --net");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* pair : {"0 - 1 ", "0 - 2 ", "1 - 2 "}) {
    EXPECT_THAT(outcome.out, HasSubstr(pair));
  }
  EXPECT_THAT(outcome.out, HasSubstr("no problem was found"));
}

TEST_F(SurveyTest, OneProcessHasNoNetwork) {
  for (const std::string command : {"doctor --net", "probe --out cluster.toml"}) {
    const Outcome alone = run_command("'" SLUICE_BINARY "' " + command, folder_);
    EXPECT_EQ(alone.code, 2);
    EXPECT_THAT(alone.err, HasSubstr("mpirun -np 4 --hostfile hosts sluice " + command));
    EXPECT_EQ(sluice(1, command).code, 2);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cluster.toml"));
}

TEST_F(SurveyTest, AProbeWritesAClusterThatSimulates) {
  folder_.write("cluster.toml", "an old one");
  const Outcome outcome = sluice(2, "probe --out cluster.toml --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  const auto cluster = read_cluster(folder_.path() / "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(cluster->topology.workers(), 2U);
  EXPECT_EQ(cluster->topology.hosts(), 2U);
  EXPECT_DOUBLE_EQ(cluster->bandwidth_gbps, report.at("bandwidth_gbps").get<double>());
  EXPECT_NEAR(to_us(cluster->latency), report.at("latency_us").get<double>(), 1e-6);
  EXPECT_FALSE(cluster->allreduce.has_value());
  for (const json& warning : report.at("warnings")) {
    EXPECT_THAT(folder_.read("cluster.toml"),
                HasSubstr("# Warning: " + warning.get<std::string>()));
    EXPECT_THAT(outcome.err, HasSubstr(warning.get<std::string>()));
  }
  EXPECT_EQ(cluster->fragment_bytes, 0) << "on one machine there are no links";
  EXPECT_EQ(report.at("collectives").size(), kCollectiveNames.size());
  for (const json& fit : report.at("collectives")) {
    EXPECT_GE(fit.at("points").size(), 2U);
    EXPECT_GE(fit.at("worst_error"), fit.at("mean_error"));
  }
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 1000, "forward_us": 1, "backward_us": 1}]})");
  const Outcome simulated = run_command(
      "'" SLUICE_BINARY "' simulate --cluster cluster.toml --profile net.json --json", folder_);
  EXPECT_EQ(simulated.code, 0) << simulated.err;
}

TEST_F(SurveyTest, ACollectiveMayReplaceTheNetwork) {
  const Outcome outcome = sluice(2, "probe --out cluster.toml --allreduce ring");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("recursive-doubling"));
  const auto cluster = read_cluster(folder_.path() / "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_TRUE(cluster->allreduce.has_value());
  EXPECT_THAT(folder_.read("cluster.svg"), HasSubstr(">ring, a + b M</text>"));
}

TEST_F(SurveyTest, AFileThatCannotBeWrittenIsRefusedAtOnce) {
  EXPECT_EQ(sluice(2, "probe").code, 2);
  const Outcome outcome = sluice(2, "probe --out nowhere/cluster.toml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no folder"));
  EXPECT_EQ(sluice(2, "probe --out .").code, 2);
}

class LabSurveyTest : public SurveyTest {
 protected:
  void SetUp() override {
    SurveyTest::SetUp();
    if (const auto lacks = lab::missing(); !lacks.empty()) {
      SKIP_FOR_LACK(fmt::format("this machine lacks {}", fmt::join(lacks, ", and ")));
    }
  }

  Outcome in_lab(const std::string& settings, const std::string& command) const {
    return run_command(
        "timeout 120 '" SLUICE_BINARY "' lab --run run --hosts 4 " + settings + " -- " + command,
        folder_);
  }
};

TEST_F(LabSurveyTest, ASlowHostIsNamed) {
  const Outcome outcome = in_lab("--rate 400mbit --rate-of 2=40mbit", "sluice doctor --net --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("ranks").at(2), json::parse(R"({"host": "h2", "interfaces": [
      {"name": "eth0", "address": "10.77.0.3", "prefix": 24, "gbps": null}]})"));
  std::size_t named = 0;
  for (const json& finding : report.at("findings")) {
    const bool slow = finding.at("kind") == "slow" && finding.at("ranks") == json::array({2});
    named += slow ? 1U : 0U;
    EXPECT_TRUE(!slow || finding.at("text").get<std::string>().starts_with("rank 2 on h2"));
  }
  EXPECT_EQ(named, 1U) << report;
}

TEST_F(LabSurveyTest, AProbeSeesWhatALinkCarries) {
  const Outcome outcome = in_lab("--rate 400mbit", "sluice probe --out cluster.toml --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto cluster = read_cluster(folder_.path() / "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(cluster->topology.hosts(), 4U);
  EXPECT_GT(cluster->bandwidth_gbps, 0.1);
  EXPECT_LT(cluster->bandwidth_gbps, 0.5);
  EXPECT_EQ(cluster->fragment_bytes, 0) << "messages go over TCP, which announces none";
}

// Messages from h1 to h3 go to an unused address, as if a firewall dropped them.
TEST_F(LabSurveyTest, AFirewallIsNamedInTime) {
  const Outcome outcome = in_lab("",
                                 "sh -c '[ $(hostname) != h1 ] || ip neigh replace 10.77.0.4 "
                                 "lladdr 02:00:00:00:00:99 dev eth0 nud permanent; "
                                 "exec sluice doctor --net --json'");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("silent"), json::parse("[[1, 3]]"));
  EXPECT_EQ(report.at("links").size(), 10U);
  ASSERT_FALSE(report.at("findings").empty());
  const std::string text = report.at("findings").at(0).at("text");
  EXPECT_THAT(text, HasSubstr("rank 1 on h1 and rank 3 on h3"));
  EXPECT_THAT(text, HasSubstr("firewall"));
}

}  // namespace
}  // namespace sluice
