// Runs join_program.cc: an MPI that the program also uses, or that Sluice joins more than once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mpirun.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MpiJoinTest : public MpiJobTest {
 protected:
  Outcome join(const std::string& mode) const {
    return mpirun(3, "'" SLUICE_MPI_JOIN "' " + mode, folder_);
  }
};

const char* const kTwice = "rank 0, rank 1, rank 2\nrank 0, rank 1, rank 2\n";

TEST_F(MpiJoinTest, AProcessJoinsAgain) {
  const Outcome outcome = join("again");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, kTwice);
  EXPECT_THAT(outcome.err, Not(HasSubstr("finalize")))
      << "mpirun complains of a process that does not";
}

// MPI numbers communicators anew once they are freed: a message that is left would be taken for one
// of the next.
TEST_F(MpiJoinTest, NoHeartbeatIsLeftForTheNextTime) {
  const Outcome outcome = join("beating");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "rank 0, rank 1, rank 2\n");
}

TEST_F(MpiJoinTest, WhoInitialisedMpiFinalisesIt) {
  for (const char* level : {"funneled", "multiple"}) {
    SCOPED_TRACE(level);
    const Outcome outcome = join(level);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, kTwice);
  }
}

TEST_F(MpiJoinTest, AnMpiThatDoesNotSuitIsNamed) {
  const Outcome single = join("single");
  EXPECT_NE(single.code, 0);
  EXPECT_THAT(single.err, HasSubstr("call MPI_Init_thread with MPI_THREAD_FUNNELED or higher"));
  const Outcome thread = join("thread");
  EXPECT_NE(thread.code, 0);
  EXPECT_THAT(thread.err, HasSubstr("use the thread that initialised MPI"));
  const Outcome finalised = join("finalised");
  EXPECT_NE(finalised.code, 0);
  EXPECT_THAT(finalised.err, HasSubstr("call MPI_Finalize after the last use of Sluice"));
}

TEST_F(MpiJoinTest, AnExitWithAFailureEndsAll) {
  const Outcome outcome = join("fail");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
}

}  // namespace
}  // namespace sluice
