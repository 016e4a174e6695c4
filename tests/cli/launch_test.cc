// Runs "sluice launch", which becomes mpirun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "cli/restart_count.h"
#include "drivers/mpi/mpi_world.h"
#include "support/skip.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

class CliLaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!mpi_info().library.starts_with("Open MPI")) {
      SKIP_AS_INAPPLICABLE("Sluice is not built with Open MPI");
    }
  }
};

TEST_F(CliLaunchTest, StartsTheProcesses) {
  const Outcome outcome =
      sluice("launch -n 3 -- sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) {
    EXPECT_THAT(outcome.out, HasSubstr(rank));
  }
}

TEST_F(CliLaunchTest, EndsWithTheCodeOfTheProgram) {
  EXPECT_EQ(sluice("launch --np 2 -- sh -c 'exit 3'").code, 3);
}

TEST_F(CliLaunchTest, StartsOnTheHostsOfAFile) {
  const TemporaryFolder folder;
  folder.write("hosts", "localhost slots=2\n");
  const Outcome outcome = sluice("launch -np 2 --hostfile hosts -- echo here", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "here\nhere\n");
}

TEST_F(CliLaunchTest, AFailureIsFollowedByARestart) {
  const Outcome outcome = sluice(
      "launch -n 2 --max-restarts 2 -- sh -c 'echo start $SLUICE_RESTART; test "
      "$OMPI_COMM_WORLD_RANK = 0 || test $SLUICE_RESTART = 2 || exit 3'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("start 2"));
  EXPECT_THAT(outcome.err, HasSubstr("the job ended with code 3; it has no --checkpoint, so all "
                                     "is lost; starting again (2 of 2)"));
}

TEST_F(CliLaunchTest, RestartsAreLimitedAndDoNotCureWrongUsage) {
  const Outcome failing = sluice("launch -n 1 --max-restarts 1 -- sh -c 'exit 3'");
  EXPECT_EQ(failing.code, 3);
  EXPECT_THAT(failing.err, HasSubstr("given up after 1 restart without a new one"));
  const Outcome usage = sluice("launch -n 1 --max-restarts 1 -- sh -c 'exit 2'");
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, Not(HasSubstr("starting again")));
}

// A stand-in for mpirun fails in some way and does not end; the second time all is well.
TEST_F(CliLaunchTest, AnMpirunThatDoesNotEndIsKilled) {
  for (const std::string failure :
       {"echo MPI_ABORT was invoked on rank 1 >&2", "PMIX_RANK=0 sleep 1"}) {
    const TemporaryFolder folder;
    folder.write("mpirun",
                 "#!/bin/sh\ntest $SLUICE_RESTART = 0 || exit 0\n" + failure + "\nsleep 1000\n");
    const Outcome outcome =
        sluice("launch -n 2 --max-restarts 1 -- true", folder, "chmod +x mpirun; PATH=$PWD:$PATH");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("launch: mpirun has not ended with its processes, and is "
                                       "killed"));
    EXPECT_THAT(outcome.err, HasSubstr("starting again (1 of 1)"));
    EXPECT_EQ(outcome.err.find("MPI_ABORT") != std::string::npos, failure.starts_with("echo"))
        << "what it says is passed on";
  }
}

TEST_F(CliLaunchTest, TheFolderOfCheckpointsMayBeNamedToLaunch) {
  const Outcome outcome =
      sluice("launch -n 1 --max-restarts 1 --checkpoint kept -- sh -c 'exit 3'", TemporaryFolder());
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("there is no checkpoint yet"));
}

// Kills one of two processes in mid-training.
TEST_F(CliLaunchTest, AKilledTrainingGoesOnFromItsNewestCheckpoint) {
  const TemporaryFolder folder;
  folder.write("net.json", R"({"name":"net","batch":8,"layers":[
      {"name":"a","params":3000,"forward_us":500,"backward_us":500},
      {"name":"b","params":300,"forward_us":500,"backward_us":500}]})");
  const std::string train = " train --model replay:net.json --iterations 400 --json";
  folder.write("work.sh", "'" SLUICE_BINARY "'" + train + R"( --checkpoint kept \
      --checkpoint-every 20it &
    if [ $SLUICE_RESTART = 0 ] && [ $OMPI_COMM_WORLD_RANK = 1 ]; then
      until ls kept/iteration-*; do sleep 0.1; done
      kill -9 $!
    fi
    wait $!)");
  const Outcome outcome =
      sluice("launch -n 2 --max-restarts 1 -- sh work.sh --checkpoint kept", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the newest checkpoint is that of iteration"));
  EXPECT_THAT(outcome.err, HasSubstr("starting again (1 of 1)"));
  const auto summary = nlohmann::json::parse(outcome.out.substr(outcome.out.rfind("\n{") + 1));
  EXPECT_GE(summary.at("resumed").at("iteration"), 20);
  const Outcome calm = sluice(train + " --workers 2", folder);
  EXPECT_EQ(summary.at("parameters_hash"), nlohmann::json::parse(calm.out).at("parameters_hash"));
}

TEST(RestartCountTest, ANewCheckpointAllowsAllRestartsAgain) {
  cli::RestartCount count(2, 10);
  EXPECT_TRUE(count.take(10));
  EXPECT_TRUE(count.take(10));
  EXPECT_FALSE(count.take(10));
  EXPECT_TRUE(count.take(20));
  EXPECT_EQ(count.taken(), 1);
  EXPECT_TRUE(count.take(20));
  EXPECT_FALSE(count.take(std::nullopt));
  EXPECT_FALSE(cli::RestartCount(0, std::nullopt).take(5));
}

TEST(RestartCountTest, TheCommandNamesTheFolder) {
  EXPECT_EQ(cli::checkpoints_of({"sluice", "train", "--checkpoint", "here"}), "here");
  EXPECT_EQ(cli::checkpoints_of({"sluice", "train", "--checkpoint=there"}), "there");
  EXPECT_EQ(cli::checkpoints_of({"sluice", "train", "--checkpoint-every", "5it"}), "");
  EXPECT_EQ(cli::checkpoints_of({"sluice", "train", "--checkpoint"}), "");
}

TEST(CliLaunchUsageTest, WrongUsageIsOneLineAndCodeTwo) {
  expect_refused(sluice("launch -n 2"), "launch: expected a command after --");
  expect_refused(sluice("launch -- true"), "--np: is missing");
  expect_refused(sluice("launch -n 0 -- true"), "--np: is 0, expected an integer from 1");
  expect_refused(sluice("launch -n 2 --hostfile none -- true"), "--hostfile: none: No such file");
}

}  // namespace
}  // namespace sluice
