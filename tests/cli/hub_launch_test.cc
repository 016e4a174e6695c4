// Runs "sluice launch --transport tcp", which starts processes without MPI.

#include "cli/hub_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST_F(CliHubLaunchTest, StartsTheProcesses) {
  const Outcome outcome = launch("-n 3 -- sh -c 'echo rank $SLUICE_RANK of $SLUICE_SIZE'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) {
    EXPECT_THAT(outcome.out, HasSubstr(rank));
  }
}

TEST_F(CliHubLaunchTest, LinksAreMeasuredWithoutMpi) {
  const Outcome look = launch("-n 3 -- '" SLUICE_BINARY "' doctor --net --json");
  ASSERT_EQ(look.code, 0) << look.err;
  const Json survey = Json::parse(look.out);
  EXPECT_EQ(survey.at("ranks").size(), 3U);
  EXPECT_EQ(survey.at("links").size(), 6U);
  EXPECT_EQ(survey.at("silent"), Json::array());
  const Outcome probe = launch("-n 2 -- '" SLUICE_BINARY "' probe --out cluster.toml");
  ASSERT_EQ(probe.code, 0) << probe.err;
  EXPECT_EQ(sluice("simulate --profile net.json --cluster cluster.toml", folder_).code, 0);
}

TEST_F(CliHubLaunchTest, EndsWithTheCodeOfTheProgramAndEndsTheOthers) {
  EXPECT_EQ(launch("-n 2 -- sh -c 'test $SLUICE_RANK = 0 && exit 3; sleep 1000'").code, 3);
  EXPECT_EQ(launch("-n 2 -- no-such-program").code, 127);
}

TEST_F(CliHubLaunchTest, AFailureIsFollowedByARestart) {
  const Outcome outcome = launch(
      "-n 2 --max-restarts 2 -- sh -c 'echo start $SLUICE_RESTART; test $SLUICE_RANK = 0 || test "
      "$SLUICE_RESTART = 2 || exit 3'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("start 2"));
  EXPECT_THAT(outcome.err, HasSubstr("starting again (2 of 2)"));
}

// A stand-in for ssh.
TEST_F(CliHubLaunchTest, StartsOnOtherHostsWithTheTokenOutOfSight) {
  folder_.write("hosts", "localhost\n127.0.0.1 slots=2\n");
  folder_.write("agent", "#!/bin/sh\necho to \"$@\" >> told\nshift\nexec sh -c \"$*\"\n");
  const Outcome outcome = sluice(
      std::string(kLaunch) +
          "-n 3 --hostfile hosts -- sh -c 'echo $SLUICE_RANK \"it'\\''s\" $SLUICE_HUB_TOKEN'",
      folder_, "chmod +x agent; OMPI_MCA_plm_rsh_agent=./agent");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t begin = outcome.out.find("it's ") + 5;
  const std::string token = outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  EXPECT_EQ(token.size(), 32);
  for (const char* rank : {"0 it's ", "1 it's ", "2 it's "}) {
    EXPECT_THAT(outcome.out, HasSubstr(rank + token));
  }
  const std::string told = folder_.read("told");
  EXPECT_THAT(told, HasSubstr("to 127.0.0.1 "));
  EXPECT_THAT(told, Not(HasSubstr(token)));
}

TEST_F(CliHubLaunchTest, AJobLeavesAHostThatIsGone) {
  write_agent();
  folder_.write("hosts", "localhost\n127.0.0.1\n127.0.0.2\n");
  const Outcome outcome = sluice(
      std::string(kLaunch) +
          "-n 3 --max-restarts 1 --hostfile hosts -- sh -c 'echo start $SLUICE_RESTART of "
          "$SLUICE_RANK; [ $SLUICE_RESTART = 1 ] || [ $SLUICE_RANK = 0 ] || { touch gone; exit 3; "
          "}'",
      folder_, kAgent);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("launch: 127.0.0.2 does not answer; other hosts run the "
                                     "processes from there"));
  for (const char* line : {"start 1 of 0\n", "start 1 of 1\n", "start 1 of 2\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
}

TEST_F(CliHubLaunchTest, AWorkerWhoseHostIsGoneJoinsFromAnotherOne) {
  write_agent();
  folder_.write("hosts", "localhost slots=2\n127.0.0.2\n");
  write_work(" train --model replay:net.json --iterations 3000 --json --preset gosgd", 2,
             kInMidTraining + std::string("; touch gone"));
  const Outcome outcome =
      sluice(std::string(kLaunch) + "-n 3 --max-restarts 2 --hostfile hosts -- sh work.sh", folder_,
             kAgent);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("starting rank 2 on 127.0.0.2 again (1 of 2)"));
  EXPECT_THAT(outcome.err, HasSubstr("starting rank 2 again (2 of 2)"));
  EXPECT_EQ(summary_in(outcome).at("joined_ranks"), Json::array({2})) << outcome.err;
}

TEST_F(CliHubLaunchTest, TrainsToTheSameBitsAsThreads) {
  for (const std::string preset : {"p3", "wfbp", "kvstore", "diloco", "pipe-sgd"}) {
    const std::string train =
        " train --model replay:net.json --iterations 20 --json --preset " + preset;
    const Outcome outcome = launch("-n 3 -- '" SLUICE_BINARY "'" + train);
    ASSERT_EQ(outcome.code, 0) << preset << outcome.err;
    const Json calm = Json::parse(sluice(train + " --workers 3", folder_).out);
    EXPECT_EQ(summary_in(outcome).at("parameters_hash"), calm.at("parameters_hash")) << preset;
  }
}

TEST_F(CliHubLaunchTest, WorkersGoOnWithoutOneThatWasKilled) {
  for (const std::string preset : {"ad-psgd", "asp --servers 1", "streaming-diloco"}) {
    write_work(" train --model replay:net.json --iterations 3000 --json --preset " + preset, 2,
               kInMidTraining);
    const Outcome outcome = launch("-n 4 -- sh work.sh");
    ASSERT_EQ(outcome.code, 0) << preset << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 2 was lost: "));
    EXPECT_THAT(outcome.err, HasSubstr("; the others go on"));
    EXPECT_EQ(summary_in(outcome).at("lost_ranks"), Json::array({2})) << preset << outcome.err;
    const Json losses = summary_in(outcome).at("losses");
    ASSERT_EQ(losses.size(), 1U) << losses;
    EXPECT_EQ(losses[0].at("rank"), 2);
    EXPECT_GT(losses[0].at("after_s"), 0);
    EXPECT_NE(losses[0].at("why"), "");
    EXPECT_EQ(summary_in(outcome).at("iterations"), 3000) << preset;
  }
}

class CliJoiningPresetTest : public CliHubLaunchTest,
                             public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, CliJoiningPresetTest,
                         ::testing::Values("gosgd", "ad-psgd", "noloco", "diloco", "sparseloco",
                                           "post-local-sgd --synchronous-first 5",
                                           "asp --servers 1", "ssp --servers 1",
                                           "asp+dgc --servers 1", "easgd --servers 1"),
                         test_name_of);

TEST_P(CliJoiningPresetTest, AWorkerThatWasKilledJoinsTheOthersAgain) {
  write_work(
      std::string(" train --model replay:net.json --iterations 3000 --json --preset ") + GetParam(),
      2, kInMidTraining);
  const Outcome outcome = launch("-n 4 --max-restarts 1 -- sh work.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 2 was lost: "));
  EXPECT_THAT(outcome.err, HasSubstr("starting rank 2 again (1 of 1)"));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 2 is back: it goes on with what rank [0-3] has, "
                                         "from iteration [0-9]+"));
  const Json summary = summary_in(outcome);
  EXPECT_FALSE(summary.contains("lost_ranks")) << outcome.err;
  EXPECT_EQ(summary.at("losses").at(0).at("rank"), 2) << "also if it has come back";
  EXPECT_EQ(summary.at("joined_ranks"), Json::array({2})) << outcome.err;
  EXPECT_EQ(summary.at("iterations"), 3000);
}

TEST_F(CliHubLaunchTest, TheSumsOfLocalStepsAreOfThoseThatAreThere) {
  write_work(" train --model replay:net.json --iterations 3000 --json --preset diloco", 1,
             kInMidTraining);
  const Outcome outcome = launch("-n 3 --max-restarts 1 -- sh work.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json regrouped = summary_in(outcome).at("regrouped");
  ASSERT_EQ(regrouped.size(), 2U) << regrouped;
  EXPECT_EQ(regrouped[0].at("workers"), 2);
  EXPECT_EQ(regrouped[1].at("workers"), 3);
  EXPECT_LE(regrouped[0].at("iteration"), regrouped[1].at("iteration"));
}

TEST_F(CliHubLaunchTest, AStoppedWorkerIsReplacedAndWritesCheckpointsAgain) {
  write_work(
      " train --model replay:net.json --iterations 6000 --json --preset gosgd --checkpoint kept "
      "--checkpoint-every 500it",
      1, kInMidTraining, "STOP");
  const Outcome outcome = launch("-n 3 --max-restarts 1 -- sh work.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 was lost: no sign of life for 3 s"));
  const Json summary = summary_in(outcome);
  EXPECT_EQ(summary.at("joined_ranks"), Json::array({1})) << outcome.err;
  EXPECT_LE(summary.at("checkpoints").at("failed"), 1) << "on its way then" << outcome.err;
  EXPECT_THAT(folder_.read("kept/iteration-6000/manifest.json"), HasSubstr("host-1"));
}

TEST_F(CliHubLaunchTest, WorkersThatNeedAllOthersEndWithTheNameOfTheLostOne) {
  write_work(" train --model replay:net.json --iterations 10000 --json --preset p3", 1,
             kInMidTraining);
  const Outcome outcome = launch("-n 3 -- sh work.sh");
  EXPECT_NE(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 was lost in iteration "));
  EXPECT_THAT(outcome.err, HasSubstr("because a server was on it"));
}

// The others notice it, too, and may be first.
TEST_F(CliHubLaunchTest, AStoppedProcessIsNamedAndEnded) {
  write_work(" train --model replay:net.json --iterations 10000 --json --preset p3", 0,
             kInMidTraining, "STOP");
  const Outcome outcome = launch("-n 2 -- sh work.sh");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("launch: rank 0 was lost: no sign of life for "));
}

TEST_F(CliHubLaunchTest, AKilledTrainingGoesOnFromItsNewestCheckpoint) {
  const std::string train = " train --model replay:net.json --iterations 400 --json";
  write_work(train + " --checkpoint kept --checkpoint-every 20it", 0,
             "for i in $(seq 300); do ls kept/iteration-* && break; sleep 0.1; done");
  const Outcome outcome = launch("-n 2 --max-restarts 1 -- sh work.sh --checkpoint kept");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("starting again (1 of 1)"));
  const Json summary = summary_in(outcome);
  EXPECT_GE(summary.at("resumed").at("iteration"), 20);
  const Json restarts = summary.at("restarts");
  ASSERT_EQ(restarts.size(), 1U) << restarts;
  EXPECT_THAT(restarts[0].at("why").get<std::string>(), HasSubstr("rank 0 "));
  EXPECT_GT(restarts[0].at("after_s"), 0);
  EXPECT_EQ(restarts[0].at("checkpoint"), summary.at("resumed").at("iteration"));
  const Json calm = Json::parse(sluice(train + " --workers 2", folder_).out);
  EXPECT_EQ(summary.at("parameters_hash"), calm.at("parameters_hash"));
}

// Rank 1 is killed once there is a checkpoint, and the server once there is one without rank 1.
TEST_F(CliHubLaunchTest, AWorkerThatTheOthersWentOnWithoutIsBackAfterARestart) {
  folder_.write("work.sh",
                "'" SLUICE_BINARY
                "' train --model replay:net.json --iterations 3000 --json --preset asp "
                R"(--servers 1 --checkpoint kept --checkpoint-every 100it 2> said-$SLUICE_RANK &
        later() { for i in $(seq 600); do sh -c "$1" > /dev/null 2>&1 && break; sleep 0.1; done; }
        if [ $SLUICE_RESTART = 0 ] && [ $SLUICE_RANK = 1 ]; then
          later 'ls kept/iteration-*'
          kill -9 $!
        elif [ $SLUICE_RESTART = 0 ] && [ $SLUICE_RANK = 3 ]; then
          later 'ls kept/iteration-*/manifest.json && grep -L host-1 kept/iteration-*/manifest.json | grep kept'
          kill -9 $!
        fi
        wait $!
        code=$?
        cat said-$SLUICE_RANK >&2
        exit $code)");
  const Outcome outcome = launch("-n 4 --max-restarts 1 -- sh work.sh --checkpoint kept");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 was lost: ")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("starting again (1 of 1)")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("host 1 was lost before; it goes on with what host 2 had"));
  const Json summary = summary_in(outcome);
  EXPECT_EQ(summary.at("iterations"), 3000);
  EXPECT_FALSE(summary.contains("lost_ranks"));
}

TEST_F(CliHubLaunchTest, TellsHowLongHeartbeatsTook) {
  const std::string train =
      "-n 2 --log-level debug -- '" SLUICE_BINARY "' train --model replay:net.json --iterations 20";
  EXPECT_THAT(launch(train).err, ContainsRegex("launch: [0-9]+ heartbeats came back, half within"));
}

TEST_F(CliHubLaunchTest, SumsOfMpiAreRefused) {
  const Outcome outcome = launch("-n 2 -- '" SLUICE_BINARY
                                 "' train --model replay:net.json --iterations 5 --preset wfbp "
                                 "--collective native");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("choose another --collective"));
}

TEST(CliHubLaunchUsageTest, WrongUsageIsOneLineAndCodeTwo) {
  const TemporaryFolder folder;
  folder.write("few", "localhost\n");
  expect_refused(sluice("launch --transport tcp -n 2 --hostfile few -- true", folder),
                 "--hostfile: few: it has 1 slots for 2 processes");
  expect_refused(sluice("launch --transport gloo -n 2 -- true", folder), "--transport");
}

}  // namespace
}  // namespace sluice
