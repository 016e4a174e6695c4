// What train does with a profile in the place of a model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNet = R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":1000,"forward_us":100,"backward_us":200},
    {"name":"b","params":30,"forward_us":100,"backward_us":200}]})";

TEST(CliReplayThreadsTest, AReplayTrainsAProfile) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const Outcome outcome = sluice(
      "train --model replay:net.json --param-scale 0.1 --time-scale 0.25 --iterations 6 "
      "--workers 2 --accumulate 2 --json --run run",
      folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json::parse(outcome.out);
  EXPECT_EQ(summary.at("model"), "replay-net");
  EXPECT_EQ(summary.at("parameters"), 103);
  EXPECT_EQ(summary.at("batch"), 16);
  EXPECT_EQ(summary.at("accumulate"), 2);
  EXPECT_EQ(summary.at("micro_batch"), 8);
  EXPECT_EQ(summary.at("iterations"), 6);
  EXPECT_GT(summary.at("mechanism").at("bytes"), 0);
  EXPECT_NEAR(summary.at("samples_per_s").get<double>(),
              32e6 / summary.at("iteration_us").get<double>(), 1e-3);
  for (const char* key : {"loss", "test_loss", "test_accuracy", "data", "learning_rate"}) {
    EXPECT_FALSE(summary.contains(key)) << key;
  }
  EXPECT_THAT(folder.read("run/metrics.jsonl"), testing::Not(HasSubstr("loss")));
  EXPECT_THAT(folder.read("run/metrics.jsonl"), HasSubstr("\"samples\":192"));
}

TEST(CliReplayThreadsTest, AReplayHasTheSpeedsOfACluster) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  folder.write("slow.toml",
               "hosts = 2\nbandwidth_gbps = 10\njitter = 0.05\n[[host]]\nindex = 1\nspeed = 0.1\n");
  const std::string command = "train --model replay:net.json --workers 2 --iterations 6 --json ";
  const Outcome outcome = sluice(command + "--cluster slow.toml --run run", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json workers = json::parse(outcome.out).at("by_worker");
  // Ten times as slow as the profile; sleeps may be longer, not shorter, and the draws differ by 5
  // %.
  EXPECT_GT(workers[1].at("compute_s"), 0.5 * 6 * 6e-3);
  EXPECT_THAT(folder.read("run/cluster.toml"), HasSubstr("speed = 0.1"));
  expect_refused(sluice(command + "--workers 3 --cluster slow.toml", folder),
                 "cluster: has 2 workers, and the run has 3");
  expect_refused(sluice(command + "--batch-shares auto", folder),
                 "batch-shares: auto takes the speeds of a replay from --cluster");
  EXPECT_EQ(sluice(command + "--cluster slow.toml --batch-shares auto", folder).code, 0);
  expect_refused(sluice("train --cluster slow.toml", folder), "--cluster: is for --model replay:");
}

TEST(CliReplayThreadsTest, AReplayWithoutJsonHasNoAccuracyEither) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const Outcome outcome = sluice("train --model replay:net.json --iterations 2", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("iteration"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("accuracy")));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("loss")));
}

TEST(CliReplayThreadsTest, ARecordIsEnoughToRunAgain) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto replay = [&](const std::string& more) {
    const Outcome outcome = sluice("train --json " + more, folder);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json::object();
  };
  const json first =
      replay("--model replay:net.json --param-scale 2 --iterations 3 --workers 2 --run run");
  std::filesystem::remove(folder.path() / "net.json");
  std::filesystem::create_directory(folder.path() / "kept");
  std::filesystem::rename(folder.path() / "run", folder.path() / "kept/run");
  const json second = replay("--config kept/run/config.toml --run again");
  for (const char* key : {"model", "parameters", "batch", "workers", "iterations"}) {
    EXPECT_EQ(first.at(key), second.at(key)) << key;
  }
  EXPECT_EQ(first.at("mechanism").at("bytes"), second.at("mechanism").at("bytes"));
  EXPECT_EQ(folder.read("again/profile.json"), kNet);
}

TEST(CliReplayTest, AReplayThatCannotBeIsOneLineAndCodeTwo) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto replay = [&](const std::string& more) {
    return sluice("train --model replay:net.json " + more, folder);
  };
  expect_refused(sluice("train --model replay:none.json"), "none.json: cannot be read");
  expect_refused(sluice("train --model replay:"), "profile \"\": there is no such file");
  expect_refused(replay("--param-scale 0"), "--param-scale: is 0, expected a number");
  expect_refused(replay("--time-scale -1"), "--time-scale: is -1, expected a number");
  expect_refused(replay("--epochs 2"), "--epochs: a replay has no data");
  expect_refused(replay("--data synthetic"), "--data: a replay has no data");
  expect_refused(sluice("train --time-scale 2"), "--time-scale: is for --model replay:");
}

TEST(CliReplayThreadsTest, HostsAndServersAreAsTheUserSays) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto train = [&](const std::string& more) {
    return sluice("train --model replay:net.json --iterations 4 --json " + more, folder);
  };
  expect_refused(train("--workers 4 --workers-per-host 3"),
                 "workers-per-host: 4 workers do not fill hosts of 3");
  const Outcome alone = train("--workers 4 --workers-per-host 4");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(json::parse(alone.out).at("mechanism").at("bytes"), 0);
  // Without a server beside it every worker's gradients and parameters cross the network.
  const Outcome apart = train("--workers 4 --workers-per-host 2 --servers 3");
  ASSERT_EQ(apart.code, 0) << apart.err;
  EXPECT_EQ(json::parse(apart.out).at("mechanism").at("bytes"), 4 * 2 * 4 * 4 * 1030);
  const Outcome several = train("--workers 4 --servers 4 --servers-per-host 2");
  ASSERT_EQ(several.code, 0) << several.err;
  EXPECT_EQ(json::parse(several.out).at("mechanism").at("bytes"), 4 * 2 * 4 * 4 * 1030);
  expect_refused(train("--servers 3 --servers-per-host 2"),
                 "servers-per-host: 3 servers do not fill hosts of 2");
  expect_refused(train("--servers 2 --preset wfbp"), "servers: exchange allreduce has no servers");
  const Outcome summed = train("--workers 4 --workers-per-host 2 --servers 3 --local-aggregation");
  ASSERT_EQ(summed.code, 0) << summed.err;
  EXPECT_EQ(json::parse(summed.out).at("mechanism").at("bytes"), 4 * 2 * 2 * 4 * 1030);
  EXPECT_GT(json::parse(summed.out).at("mechanism").at("gradients_summed_locally"), 0);
}

// Pipe-SGD's PS-Sync: one node more than there are workers is the server.
TEST(CliReplayThreadsTest, PsSyncHasItsServerOnAHostOfItsOwn) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto train = [&](const std::string& more) {
    return sluice("train --model replay:net.json --workers 3 --iterations 4 --json " + more,
                  folder);
  };
  const auto bytes = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out).at("mechanism").at("bytes").get<int>();
  };
  const Outcome apart = train("--preset ps-sync");
  EXPECT_EQ(bytes(apart), 4 * 2 * 3 * 4 * 1030) << "all that workers push and get";
  EXPECT_THAT(apart.err, HasSubstr("preset ps-sync has its server on a host of its own"));
  const Outcome beside = train("--preset ps-sync --servers 0");
  EXPECT_EQ(bytes(beside), 4 * 2 * 2 * 4 * 1030) << "one worker is beside the server";
  EXPECT_THAT(beside.err, Not(HasSubstr("on a host of its own")));
  EXPECT_EQ(train("--preset ps-sync --exchange allreduce").code, 0) << "it has no servers";
}

}  // namespace
}  // namespace sluice
