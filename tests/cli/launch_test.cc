// Runs "sluice launch", which becomes mpirun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/program.h"
#include "drivers/mpi/mpi_world.h"
#include "support/skip.h"

namespace sluice {
namespace {

using testing::HasSubstr;

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

TEST(CliLaunchUsageTest, WrongUsageIsOneLineAndCodeTwo) {
  expect_refused(sluice("launch -n 2"), "launch: expected a command after --");
  expect_refused(sluice("launch -- true"), "--np: is missing");
  expect_refused(sluice("launch -n 0 -- true"), "--np: is 0, expected an integer from 1");
  expect_refused(sluice("launch -n 2 --hostfile none -- true"), "--hostfile: none: No such file");
}

}  // namespace
}  // namespace sluice
