// Processes of "sluice launch --transport tcp" that go on without the one that led them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "cli/hub_launch.h"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kTrain = " train --model replay:net.json --iterations 3000 --json --run kept";

class CliHubLeaderTest : public CliHubLaunchTest,
                         public ::testing::WithParamInterface<const char*> {
 protected:
  // The rows of the record are those of its iterations, each at most once; how many there are.
  std::size_t rows() const {
    std::istringstream lines(folder_.read("kept/metrics.jsonl"));
    std::set<int> steps;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(steps.insert(Json::parse(line).at("step").get<int>()).second) << line;
    }
    return steps.size();
  }
};
INSTANTIATE_TEST_SUITE_P(, CliHubLeaderTest,
                         ::testing::Values("gosgd", "ad-psgd", "noloco", "diloco",
                                           "streaming-diloco", "asp --servers 1",
                                           "easgd --servers 1"),
                         test_name_of);

TEST_P(CliHubLeaderTest, AnotherOneLeadsAndTheKilledOneJoins) {
  write_work(std::string(kTrain) + " --preset " + GetParam(), 0, kInMidTraining);
  const Outcome outcome = launch("-n 4 --max-restarts 1 -- sh work.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 was lost: "));
  EXPECT_THAT(outcome.err, HasSubstr("; the others go on"));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 1 leads now, and keeps the record in kept from"));
  EXPECT_THAT(outcome.err, ContainsRegex("rank 0 is back: it goes on with what rank [12] has"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("the job ended")));
  const Json summary = summary_in(outcome);
  EXPECT_EQ(summary.at("leader").at("rank"), 1);
  EXPECT_FALSE(summary.contains("lost_ranks")) << summary;
  EXPECT_FALSE(summary.contains("resumed")) << summary;
  EXPECT_EQ(summary.at("losses").at(0).at("rank"), 0);
  EXPECT_EQ(summary.at("joined_ranks"), Json::array({0}));
  EXPECT_EQ(summary.at("iterations"), 3000);
  EXPECT_EQ(Json::parse(folder_.read("kept/summary.json")).at("leader"), summary.at("leader"));
  const std::size_t since = summary.at("leader").at("since_iteration");
  EXPECT_GE(rows(), 3000 - since);
}

TEST_F(CliHubLaunchTest, NobodyComesBackAndAnotherOneLeadsToTheEnd) {
  write_work(std::string(kTrain) + " --preset diloco --checkpoint written --checkpoint-every 500it",
             0, kInMidTraining, "STOP");
  const Outcome outcome = launch("-n 3 -- sh work.sh");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 was lost: no sign of life for 3 s"));
  const Json summary = summary_in(outcome);
  EXPECT_EQ(summary.at("lost_ranks"), Json::array({0}));
  EXPECT_EQ(summary.at("leader").at("rank"), 1);
  EXPECT_LE(summary.at("checkpoints").at("failed"), 1) << "on its way then";
  const std::string manifest = folder_.read("written/iteration-3000/manifest.json");
  EXPECT_THAT(manifest, HasSubstr("host-1"));
  EXPECT_THAT(manifest, Not(HasSubstr("host-0")));
}

// Rank 0 is killed, and rank 1 once it leads and trains with rank 0 again, which leads then.
TEST_F(CliHubLaunchTest, TheNextLeaderMayBeLostToo) {
  for (const std::string preset : {"gosgd", "diloco", "asp --servers 1"}) {
    folder_.write("work.sh", "'" SLUICE_BINARY
                             "' train --model replay:net.json --iterations 4000 --json --preset " +
                                 preset + R"( 2> said-$SLUICE_RANK &
        await() { for i in $(seq 300); do sed -n "/$1/,\$p" said-$SLUICE_RANK | grep -q step && break; sleep 0.1; done; }
        if [ -z "$SLUICE_JOINS" ] && [ $SLUICE_RANK = 0 ]; then
          await step
          kill -9 $!
        elif [ -z "$SLUICE_JOINS" ] && [ $SLUICE_RANK = 1 ]; then
          await 'rank 0 is back'
          kill -9 $!
        fi
        wait $!
        code=$?
        cat said-$SLUICE_RANK >&2
        exit $code)");
    const Outcome outcome = launch("-n 4 --max-restarts 1 -- sh work.sh");
    ASSERT_EQ(outcome.code, 0) << preset << outcome.err;
    const Json summary = summary_in(outcome);
    EXPECT_EQ(summary.at("leader").at("rank"), 0) << "the lowest";
    ASSERT_EQ(summary.at("losses").size(), 2U) << "before it joined, too: " << summary;
    EXPECT_EQ(summary.at("losses").at(0).at("rank"), 0);
    EXPECT_EQ(summary.at("losses").at(1).at("rank"), 1);
    EXPECT_EQ(summary.at("joined_ranks"), Json::array({0, 1}));
    EXPECT_EQ(summary.at("iterations"), 4000);
  }
}

TEST_F(CliHubLaunchTest, WhereRankZeroHasAServerAllEndWithItsName) {
  write_work(std::string(kTrain) + " --preset asp --servers 0", 0, kInMidTraining);
  const Outcome outcome = launch("-n 3 -- sh work.sh");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 was lost in iteration "));
  EXPECT_THAT(outcome.err, HasSubstr("because a server was on it"));
}

}  // namespace
}  // namespace sluice
