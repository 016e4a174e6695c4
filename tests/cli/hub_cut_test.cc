// The connection between two processes of "sluice launch --transport tcp" breaks, and no other one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cli/program.h"
#include "support/shared_connection.h"
#include "support/skip.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class CliHubCutTest : public ::testing::Test {
 protected:
  CliHubCutTest() {
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
        {"name":"a","params":3000,"forward_us":500,"backward_us":500},
        {"name":"b","params":300,"forward_us":500,"backward_us":500}]})");
  }

  // Trains with four processes, and breaks the connection between ranks 1 and 2 in the midst.
  Outcome train(const std::string& preset, const std::string& launch = "") {
    const std::string mark = "SLUICE_TEST_CUT=" + folder_.path().string();
    std::jthread cutting([&](const std::stop_token& stop) {
      const auto has_begun = [&] {
        return folder_.read("said-0").find("step") != std::string::npos;
      };
      while (!stop.stop_requested() && broken_ == 0) {
        if (has_begun()) {
          broken_ = break_connections({mark, "SLUICE_RANK=1"}, {mark, "SLUICE_RANK=2"});
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
    folder_.write("said-0", "");
    folder_.write("work.sh", "exec '" SLUICE_BINARY
                             "' train --model replay:net.json --iterations 4000 --json --preset " +
                                 preset + " 2> said-$SLUICE_RANK");
    return sluice("launch --transport tcp -n 4 " + launch + " -- sh work.sh", folder_, mark);
  }

  const TemporaryFolder folder_;
  int broken_ = 0;
};

TEST_F(CliHubCutTest, OneOfTheTwoIsLostAndJoinsAgainWhereTheOthersGoOn) {
  const Outcome outcome = train("gosgd", "--max-restarts 1");
  if (broken_ == 0) {
    SKIP_FOR_LACK("connections of other processes cannot be broken here");
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("rank 2 was lost: its connection with rank 1 broke, while both "
                        "reach launch; the others go on"));
  EXPECT_THAT(outcome.err, HasSubstr("starting rank 2 again (1 of 1)"));
  const auto summary = nlohmann::json::parse(outcome.out.substr(outcome.out.rfind("\n{") + 1));
  EXPECT_EQ(summary.at("joined_ranks"), nlohmann::json::array({2})) << outcome.err;
  EXPECT_EQ(summary.at("iterations"), 4000);
}

TEST_F(CliHubCutTest, AllEndWithTheNamesOfBothWhereTheyAreNeeded) {
  const Outcome outcome = train("p3");
  if (broken_ == 0) {
    SKIP_FOR_LACK("connections of other processes cannot be broken here");
  }
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("launch: the connection between rank 1 and rank 2 broke, while "
                        "both reach launch; training needs both"));
}

}  // namespace
}  // namespace sluice
