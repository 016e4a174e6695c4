// Runs exchange_program.cc as processes of an MPI job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mpirun.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class ExchangeMpiTest : public MpiJobTest {
 protected:
  Outcome run(int processes, const std::string& arguments) {
    return mpirun(processes, "'" SLUICE_EXCHANGE_PROGRAM "' " + arguments, folder_);
  }
};

class ExchangePresetMpiTest : public ExchangeMpiTest,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(ExchangePresetMpiTest, SumsComeBackLayerByLayer) {
  for (const int processes : {1, 3}) {
    const Outcome outcome = run(processes, std::string("steps ") + GetParam());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, std::to_string(processes) + " processes, 31 and 3 steps\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, ExchangePresetMpiTest,
                         ::testing::Values("wfbp", "p3-allreduce", "ar-sgd", "p3", "slicing",
                                           "kvstore", "tensorflow"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(ExchangeMpiTest, AProcessThatHasJoinedAddsZeros) {
  const Outcome outcome = run(3, "join p3");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "10 of 3; allgather while some processes are in join(): only sums, barriers and "
            "broadcasts from a process that has not joined can do without them\n");
}

TEST_F(ExchangeMpiTest, DifferentCallsAreNamedInAllProcesses) {
  const Outcome outcome = run(2, "differ");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 calls barrier, but rank 0 calls allreduce (sum) of 1 "
                                     "float64: all processes must make the same calls"));
}

TEST_F(ExchangeMpiTest, AProcessThatStopsStepsEndsAll) {
  const Outcome outcome = run(3, "end-early");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 has ended its training after 5 steps, but rank"));
}

TEST_F(ExchangeMpiTest, AProcessThatAbortsEndsAll) {
  const Outcome outcome = run(3, "abort");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
}

TEST_F(ExchangeMpiTest, AnUnsuitablePresetIsRefused) {
  const Outcome outcome = run(1, "unknown asp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no preset asp sums gradients for the program's own "
                                     "optimizer; choose one of "));
  EXPECT_THAT(outcome.err, HasSubstr("wfbp"));
}

}  // namespace
}  // namespace sluice
