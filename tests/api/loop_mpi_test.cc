// Runs loop_program.cc as processes of an MPI job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

class LoopMpiTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi(); !why.empty()) {
      SKIP_FOR_LACK(why);
    }
  }
};

// All ranks return from run_loops(), also those that got no signal.
TEST_F(LoopMpiTest, ASignalToOneRankStopsAll) {
  const TemporaryFolder folder;
  const Outcome outcome = mpirun(3, "'" SLUICE_LOOP_PROGRAM "' stop", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string once = "stopped by 15\n";
  EXPECT_EQ(outcome.out, once + once + once);
}

// Two workers and a server end with the loss of two workers with servers beside them.
TEST_F(LoopMpiTest, AServerOfItsOwnServesWithoutALoop) {
  const TemporaryFolder folder;
  const Outcome outcome = mpirun(3, "'" SLUICE_LOOP_PROGRAM "' serve", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("2 workers, loss 0.151\n"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("served\n"));
}

class LoopAgainMpiTest : public LoopMpiTest, public testing::WithParamInterface<std::string> {};

TEST_P(LoopAgainMpiTest, RunsOneAfterAnother) {
  const TemporaryFolder folder;
  const Outcome outcome = mpirun(2, "'" SLUICE_LOOP_PROGRAM "' 2 " + GetParam(), folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // The net's output is 3 at first; each update before the last loss multiplies it by 0.6.
  const std::string once = "2 workers, loss 0.151\n";
  EXPECT_EQ(outcome.out, once + once);
}

INSTANTIATE_TEST_SUITE_P(Initialised, LoopAgainMpiTest, testing::Values("", "own"),
                         [](const auto& of) {
                           return of.param.empty() ? "bySluice" : "byProgram";
                         });

}  // namespace
}  // namespace sluice
