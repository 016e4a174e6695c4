// What simulate says of faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CliFaultsTest : public testing::Test {
 protected:
  CliFaultsTest() {
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
        {"name":"a","params":100000,"forward_us":100,"backward_us":200},
        {"name":"b","params":30,"forward_us":100,"backward_us":200}]})");
    folder_.write("four.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  }

  json costs(const std::string& faults, const std::string& more) {
    folder_.write("faults.toml", faults);
    const Outcome outcome = run(" --faults faults.toml --json " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out).at("faults");
  }
  Outcome run(const std::string& more) {
    return sluice("simulate --profile net.json --cluster four.toml " + more, folder_);
  }
  void expect_refused(const std::string& more, const std::string& why) {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 2) << more;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }

  TemporaryFolder folder_;
};

TEST_F(CliFaultsTest, AKillCostsALockStepARestart) {
  const json one = costs(
      "detect_s = 1\nrestart_s = 9\niterations = 100000\n[[fault]]\nkind = 'kill'\nhost = 2\n"
      "at_s = 20\n",
      "--preset p3 --checkpoint-every 100it");
  EXPECT_EQ(one.at("restarts"), 1);
  EXPECT_LE(one.at("iterations_lost"), 4 * 100);
  EXPECT_GE(one.at("time_lost_s"), 10);
  EXPECT_LE(one.at("time_lost_s"), 11);
}

TEST_F(CliFaultsTest, CheckpointsAreWorthTheirInterval) {
  const std::string often = "kill_every_h = 2\niterations = 1000000\ncheckpoint_s = 0.5\n";
  const auto total = [&](const std::string& every) {
    return costs(often, "--preset p3 --fault-seed 3 --checkpoint-every " + every)
        .at("total_s")
        .get<double>();
  };
  const double hundred = total("100it");
  const double ten_thousand = total("10000it");
  EXPECT_LT(ten_thousand, hundred) << "so many checkpoints cost more than what they save";
  EXPECT_LT(ten_thousand, total("200000it")) << "so few lose more than they cost";
}

TEST_F(CliFaultsTest, OthersGoOnWithoutTheKilled) {
  const json gossip =
      costs("[[fault]]\nkind = 'kill'\nhost = 2\nat_s = 0.01\n", "--preset gosgd --iterations 100");
  EXPECT_EQ(gossip.at("restarts"), 0);
  EXPECT_GT(gossip.at("iterations_lost"), 50);
  EXPECT_LT(gossip.at("time_lost_s"), 0.1);
}

TEST_F(CliFaultsTest, OthersRegroupWhereSumsNeedThem) {
  const std::string kill =
      "detect_s = 0.01\nregroup_s = 0.02\n[[fault]]\nkind = 'kill'\nhost = 2\nat_s = 0.03\n";
  for (const char* const preset : {"local-sgd", "diloco", "streaming-diloco", "sparseloco"}) {
    const json one = costs(kill, "--iterations 100 --preset " + std::string(preset));
    EXPECT_EQ(one.at("restarts"), 0) << preset;
    EXPECT_GT(one.at("iterations_lost"), 20) << preset;
    EXPECT_LT(one.at("time_lost_s"), 0.1) << preset;
  }
}

TEST_F(CliFaultsTest, SynchronousIterationsNeedAllWorkers) {
  const auto restarts = [&](double at_s) {
    const std::string kill = "[[fault]]\nkind = 'kill'\nhost = 2\nat_s = " + std::to_string(at_s);
    return costs(kill, "--iterations 100 --preset post-local-sgd --synchronous-first 20")
        .at("restarts");
  };
  EXPECT_EQ(restarts(0.001), 1);
  EXPECT_EQ(restarts(0.2), 0);
}

TEST_F(CliFaultsTest, RankZeroIsNeededWhereItHasAServer) {
  const auto restarts = [&](const std::string& preset) {
    return costs("[[fault]]\nkind = 'kill'\nhost = 0\nat_s = 0.01\n",
                 "--iterations 100 --preset " + preset)
        .at("restarts");
  };
  for (const char* const preset : {"gosgd", "diloco", "asp --servers 1"}) {
    EXPECT_EQ(restarts(preset), 0) << preset;
  }
  EXPECT_EQ(restarts("asp"), 1);
}

TEST_F(CliFaultsTest, ASeedAloneDrawsOneFault) {
  const Outcome one = run("--fault-seed 5");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("time lost"));
  EXPECT_EQ(one.out, run("--fault-seed 5").out);
}

TEST_F(CliFaultsTest, RefusesWhatMakesNoSense) {
  folder_.write("bad.toml", "[[fault]]\nkind = 'kill'\nhost = 9\nat_s = 1\n");
  folder_.write("channel.toml", "hosts = 2\n[allreduce]\nstartup_us = 1\nns_per_byte = 1\n");
  expect_refused("--faults bad.toml", "bad.toml: fault[0]: host: is 9");
  expect_refused("--faults missing.toml", "missing.toml");
  expect_refused("--checkpoint-every 5it", "checkpoint-every");
  expect_refused("--fault-seed 1 --checkpoint-every 5min", "such as 500it");
  expect_refused("--fault-seed 1 --sweep hosts=2,3", "fault-seed");
  const Outcome channel = sluice(
      "simulate --profile net.json --cluster channel.toml --preset wfbp --fault-seed 1", folder_);
  EXPECT_EQ(channel.code, 2);
  EXPECT_THAT(channel.err, HasSubstr("[allreduce]"));
}

}  // namespace
}  // namespace sluice
