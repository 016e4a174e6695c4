// The processes are threads, each with a world of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "drivers/hub/running_hub.h"
#include "drivers/hub/tcp_survey.h"
#include "drivers/processes/survey_messages.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using testing::in_worlds;
using testing::RunningHub;

// As short as can be.
constexpr SurveySpec kLook{.enough = Duration{0}, .repetitions = 1};

TEST(TcpSurveyThreads, MeasuresEachLinkBothWays) {
  const RunningHub hub(3);
  in_worlds(hub, 3, [](ProcessWorld& world) {
    const auto survey = survey_over_tcp(world, kLook);
    if (world.rank() > 0) {
      EXPECT_FALSE(survey);
      return;
    }
    ASSERT_TRUE(survey);
    EXPECT_EQ(survey->ranks.size(), 3U);
    EXPECT_TRUE(survey->same_machine(0, 2));
    EXPECT_THAT(survey->silent, IsEmpty());
    std::vector<RankPair> ways;
    for (const LinkTimings& link : survey->links) {
      ways.emplace_back(link.from, link.to);
      ASSERT_GE(link.timings.size(), 2U);
      EXPECT_EQ(link.timings[0].bytes, 0);
      EXPECT_GT(link.timings[0].median, Duration{0});
      EXPECT_GT(link.timings[1].bytes, 0);
    }
    std::ranges::sort(ways);
    EXPECT_THAT(ways, ElementsAre(RankPair(0, 1), RankPair(0, 2), RankPair(1, 0), RankPair(1, 2),
                                  RankPair(2, 0), RankPair(2, 1)));
  });
}

// It does what is asked of it, but nobody can connect to it.
TEST(TcpSurveyThreads, APairThatCannotConnectIsSilent) {
  const RunningHub hub(2);
  in_worlds(hub, 2, [](ProcessWorld& world) {
    if (world.rank() == 0) {
      const auto survey = survey_over_tcp(world, kLook);
      ASSERT_TRUE(survey);
      EXPECT_THAT(survey->silent, ElementsAre(RankPair(0, 1)));
      EXPECT_THAT(survey->links, IsEmpty());
      return;
    }
    world.gather(write_hello({.host = "elsewhere", .interfaces = {}}), "the test");
    EXPECT_EQ(world.broadcast("", "the test"), "1");
    const auto order = read_order(world.scatter({}, "the test"), 2);
    ASSERT_TRUE(order);
    EXPECT_EQ(*order, (SurveyOrder{.peer = 0, .measures = false}));
    world.send_text(0, "");
    world.gather("", "the test");
  });
}

}  // namespace
}  // namespace sluice
