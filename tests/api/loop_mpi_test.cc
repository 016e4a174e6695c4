// Runs loop_program.cc as processes of an MPI job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "report/page/run_data.h"
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
  const Outcome outcome = run(3,
                              "equal preset=p3 preset=p3-allreduce "
                              "preset=wfbp,exchange=ps-pull,order=priority "
                              "preset=ar-sgd,partition=slice,collective=ring");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string once = "3 workers, 1.00 of them right\n";
  EXPECT_EQ(outcome.out, once + once + once + once);
}

TEST_F(LoopMpiTest, LocalStepsLeadToTheGlobalParametersOfOneProcess) {
  const Outcome outcome = run(3,
                              "equal preset=local-sgd,every=2 preset=diloco,every=3 "
                              "preset=diloco,every=4,fragments=2,outer_delay=1,outer_mix=0.5");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string once = "3 workers, 1.00 of them right\n";
  EXPECT_EQ(outcome.out, once + once + once);
  const Outcome pair = run(2, "equal preset=noloco,every=3");
  EXPECT_EQ(pair.out, "2 workers, 1.00 of them right\n") << pair.err;
}

TEST_F(LoopMpiTest, TwoModelsTrainByTurns) {
  const Outcome outcome = run(3, "two");
  EXPECT_EQ(outcome.out, "3 workers, 1.00 of them right\n") << outcome.err;
}

TEST_F(LoopMpiTest, LeavesTheRecordOfARun) {
  const std::string run_folder = (folder_.path() / "run").string();
  const Outcome outcome = run(3, "equal preset=p3,trace=auto,run=" + run_folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto data = read_run(run_folder);
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_FALSE(data->steps.empty());
  EXPECT_TRUE(data->steps.back().loss);
  EXPECT_EQ(data->number({"iterations"}), static_cast<double>(data->steps.size()));
  EXPECT_GT(data->number({"mechanism", "messages"}), 0);
  const auto trace = read_file(run_folder + "/trace.json");
  ASSERT_TRUE(trace);
  for (const char* span : {"\"forward ", "\"backward ", "\"wait for ", "\"push ", "\"sum "}) {
    EXPECT_THAT(*trace, ::testing::HasSubstr(span));
  }
}

TEST_F(LoopMpiTest, GoesOnFromItsCheckpointWithTheSameBits) {
  const Outcome outcome = run(3, "resumed '" + (folder_.path() / "kept").string() + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "3 workers, 1.00 of them right\n");
  const Outcome alone = run(1, "resumed '" + (folder_.path() / "kept").string() + "'");
  EXPECT_NE(alone.code, 0);
  EXPECT_THAT(alone.err, ::testing::HasSubstr("was saved by 3 processes, and now there is 1"));
}

// Also while a sum is on its way, and with what error feedback has kept back.
TEST_F(LoopMpiTest, LocalStepsGoOnFromACheckpointWithTheSameBits) {
  for (const std::string options :
       {"preset=diloco,every=3", "preset=diloco,every=4,fragments=2,outer_delay=3,outer_mix=0.5",
        "preset=sparseloco,every=2"}) {
    const TemporaryFolder kept;
    const Outcome outcome = run(3, "resumed '" + (kept.path() / "kept").string() + "' " + options);
    EXPECT_EQ(outcome.out, "3 workers, 1.00 of them right\n") << outcome.err;
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
