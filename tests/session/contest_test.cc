#include "session/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Dense learns more from its samples; lean takes a tenth of its time where the link is slow, and
// as long as dense where it is fast. The third diverges with its second seed.
constexpr const char* kRuns =
    "preset,codec,hosts,seed,gbps,epoch,time_s,test_loss\n"
    "p3,,4,1,0.1,1,10,3\np3,,4,1,0.1,2,20,1\np3,,4,2,0.1,1,10,5\np3,,4,2,0.1,2,20,2\n"
    "p3,,4,1,10,1,1,3\np3,,4,1,10,2,2,1\np3,,4,2,10,1,1,5\np3,,4,2,10,2,2,2\n"
    "p3,bf16,4,1,0.1,1,6,4\np3,bf16,4,1,0.1,2,12,2\np3,bf16,4,2,0.1,1,6,4\np3,bf16,4,2,0.1,2,12,2\n"
    "p3,bf16,4,1,10,1,1,4\np3,bf16,4,1,10,2,2,2\np3,bf16,4,2,10,1,1,4\np3,bf16,4,2,10,2,2,2\n"
    "asp,,4,1,0.1,1,0.1,0.5\nasp,,4,2,0.1,1,0.1,nan\n"
    "asp,,4,1,10,1,0.1,0.5\nasp,,4,2,10,1,0.1,nan\n";

StudyContest some_contest() {
  return {.name = "n",
          .among = "preset=p3; preset=p3 codec=bf16; preset=asp",
          .rows = "hosts=4",
          .columns = "gbps=0.1,10",
          .of = "test_loss",
          .title = "t"};
}

TEST(ContestTest, IsDecidedAtEqualSamplesAndAtEqualSeconds) {
  const auto data = StudyData::parse(kRuns, "data.csv");
  ASSERT_TRUE(data);
  const auto board = decide(some_contest(), *data);
  ASSERT_TRUE(board) << board.error().message();
  EXPECT_THAT(board->columns,
              ElementsAre("equal samples", "equal seconds, gbps=0.1", "equal seconds, gbps=10"));
  ASSERT_EQ(board->rows.size(), 1U);
  const std::vector<Board::Cell>& cells = board->rows[0].cells;
  EXPECT_EQ(cells[0].name, "p3");
  EXPECT_EQ(cells[0].figure, "1.500 ± 0.707");
  // After 12 seconds bf16 has seen all samples. The others have 3 - 0.4 and 5 - 0.6 on their lines.
  EXPECT_EQ(cells[1].name, "p3, bf16");
  EXPECT_EQ(cells[1].series, 1U);
  EXPECT_THAT(cells[1].all, ElementsAre("p3: 3.500 ± 1.273", "p3, bf16: 2.000 ± 0.000", "asp: -"));
  EXPECT_EQ(cells[2].name, "p3");
}

TEST(ContestTest, WhoHasNoEvaluationYetDoesNotCount) {
  const auto data = StudyData::parse(
      "preset,seed,gbps,epoch,time_s,test_loss\n"
      "p3,1,1,1,10,1\nlean,1,1,1,2,3\nlean,1,1,2,4,2\n",
      "data.csv");
  ASSERT_TRUE(data);
  StudyContest contest = some_contest();
  contest.among = "preset=p3,lean";
  contest.columns = "gbps=1";
  contest.rows = "seed=1";
  const auto board = decide(contest, *data);
  ASSERT_TRUE(board) << board.error().message();
  EXPECT_EQ(board->rows[0].cells[0].name, "p3");
  EXPECT_EQ(board->rows[0].cells[1].name, "lean");
  EXPECT_EQ(board->rows[0].cells[1].all[0], "p3: -");
}

TEST(ContestTest, SaysWhatIsNotInTheData) {
  const auto data = StudyData::parse(kRuns, "data.csv");
  StudyContest contest = some_contest();
  contest.rows = "hosts=4,8";
  EXPECT_THAT(decide(contest, *data).error().message(), HasSubstr("hosts=8"));
  contest = some_contest();
  contest.of = "loss";
  EXPECT_THAT(decide(contest, *data).error().message(), HasSubstr("loss: is no column"));
}

}  // namespace
}  // namespace sluice
