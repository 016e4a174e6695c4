// Runs loop_program.cc as processes of an MPI job.

#include <gtest/gtest.h>

#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

class LoopMpiTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi(); !why.empty()) {
      SKIP_FOR_LACK(why);
    }
  }
};

TEST_P(LoopMpiTest, RunsOneAfterAnother) {
  const TemporaryFolder folder;
  const Outcome outcome = mpirun(2, "'" SLUICE_LOOP_PROGRAM "' 2 " + GetParam(), folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // The net's output is 3 at first; each update before the last loss multiplies it by 0.6.
  const std::string once = "2 workers, loss 0.151\n";
  EXPECT_EQ(outcome.out, once + once);
}

INSTANTIATE_TEST_SUITE_P(Initialised, LoopMpiTest, testing::Values("", "own"), [](const auto& of) {
  return of.param.empty() ? "bySluice" : "byProgram";
});

}  // namespace
}  // namespace sluice
