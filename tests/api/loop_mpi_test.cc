// Runs loop_program.cc as processes of an MPI job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mpirun.h"

namespace sluice {
namespace {

class LoopMpiTest : public MpiJobTest {
 protected:
  Outcome run(int processes, const std::string& arguments) {
    return mpirun(processes, "'" SLUICE_LOOP_PROGRAM "' " + arguments, folder_);
  }
};

// With an optimizer, a schedule and micro-batches of the program's own.
TEST_F(LoopMpiTest, ProcessesTrainAsOneOnTheJoinedBatch) {
  for (const char* with :
       {"preset=p3", "preset=p3-allreduce", "preset=wfbp exchange=ps-pull order=priority",
        "preset=ar-sgd partition=slice collective=ring"}) {
    const Outcome outcome = run(3, std::string("equal ") + with);
    EXPECT_EQ(outcome.code, 0) << with << outcome.err;
    EXPECT_EQ(outcome.out, "3 workers, 1.00 of them right\n") << with;
  }
}

TEST_F(LoopMpiTest, RunsTwiceInAProgramThatHasInitialisedMpi) {
  const Outcome outcome = run(2, "own");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string once = "2 workers, 1.00 of them right\n";
  EXPECT_EQ(outcome.out, once + once);
}

TEST_F(LoopMpiTest, AFailureInOneLoopEndsAll) {
  const Outcome outcome = run(3, "throw");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("sluice: rank 1 on .*: the data has ended"));
}

}  // namespace
}  // namespace sluice
