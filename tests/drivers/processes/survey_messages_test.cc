#include "drivers/processes/survey_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kRanks = 4;

SurveyResult some_result() {
  const std::vector<Timing> timings{{0, Duration(10), Duration(9), Duration(12)},
                                    {4096, Duration(50), Duration(45), Duration(70)}};
  return {2, {{1, 2, timings}, {2, 1, timings}}};
}

// Reads a text as every kind of message.
std::vector<bool> readings_of(const std::string& text) {
  return {static_cast<bool>(read_hello(text)), static_cast<bool>(read_reach(text, kRanks)),
          static_cast<bool>(read_order(text, kRanks)),
          static_cast<bool>(read_result(text, 1, kRanks))};
}

TEST(SurveyMessages, SurviveTheTrip) {
  const RankInfo info{"a", {{"eth0", "10.0.0.1", 8, 2.5}}, "b7"};
  EXPECT_EQ(*read_hello(write_hello(info)), info);
  const std::vector<bool> reach{true, false, true, true};
  EXPECT_EQ(*read_reach(write_reach(reach), kRanks), reach);
  for (const SurveyOrder& order : {SurveyOrder{}, SurveyOrder{.peer = 3, .measures = true}}) {
    EXPECT_EQ(*read_order(write_order(order), kRanks), order);
  }
  const SurveyResult result = some_result();
  const auto read = read_result(write_result(result), 1, kRanks);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->peer, 2U);
  ASSERT_EQ(read->links.size(), 2U);
  EXPECT_EQ(read->links[1].from, 2U);
  EXPECT_EQ(read->links[1].to, 1U);
  EXPECT_EQ(read->links[1].timings, result.links[1].timings);
  EXPECT_TRUE(read_result(write_result({3, {}}), 1, kRanks)->links.empty());
}

TEST(SurveyMessages, SayWhatIsWrong) {
  const auto order = [](const std::string& text) {
    const auto read = read_order(text, kRanks);
    return read ? "" : read.error().message();
  };
  EXPECT_THAT(order(""), HasSubstr("not a message of a survey"));
  EXPECT_THAT(order("\x01\x02"), HasSubstr("not a message of a survey"));
  EXPECT_THAT(order(R"({"survey": 7, "what": "order", "content": {}})"),
              HasSubstr("survey version is 7, expected 1"));
  EXPECT_THAT(order(write_reach({true})), HasSubstr(R"(it is "reach", expected order)"));
  EXPECT_THAT(order(write_order({.peer = 4})), HasSubstr("peer 4 of 4 ranks"));
  EXPECT_THAT(order(R"({"survey": 1, "what": "order", "content": {"peer": -1}})"),
              HasSubstr("peer -1"));
  EXPECT_FALSE(read_reach(write_reach({true, true}), kRanks)) << "of too few ranks";
}

TEST(SurveyMessages, RefuseTimingsThatCannotBe) {
  const auto refused = [](const std::function<void(SurveyResult&)>& change) {
    SurveyResult result = some_result();
    change(result);
    return !read_result(write_result(result), 1, kRanks);
  };
  EXPECT_FALSE(refused([](SurveyResult&) {}));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.peer = 1; })) << "with itself";
  EXPECT_TRUE(refused([](SurveyResult& r) { r.peer = 9; }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links.pop_back(); }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links[0].timings.clear(); }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links[0].timings[1].bytes = 0; }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links[0].timings[1].bytes = 1LL << 40U; }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links[0].timings[1].median = Duration(-1); }));
  EXPECT_TRUE(refused([](SurveyResult& r) { r.links[0].timings[1].max = Duration::max(); }));
}

TEST(SurveyMessages, ACommandStaysWithinTheBuffer) {
  EXPECT_TRUE(check_command({.out = -1}));
  EXPECT_TRUE(check_command({.out = kMaxPingPongBytes}));
  EXPECT_FALSE(check_command({.out = kMaxPingPongBytes + 1}));
  EXPECT_FALSE(check_command({.back = kMaxPingPongBytes + 1}));
  EXPECT_FALSE(check_command({.back = -1}));
  EXPECT_FALSE(check_command({.version = 2}));
}

RC_GTEST_PROP(SurveyMessagesProperty, AnyTextIsRefusedOrOneMessage, ()) {
  const std::string message = *rc::gen::element(
      write_hello({"a", {{"eth0", "10.0.0.1", 8, 2.5}}}), write_reach({true, false, true, true}),
      write_order({.peer = 3}), write_result(some_result()));
  std::string text = message;
  for (int damages = *rc::gen::inRange(0, 4); damages > 0; --damages) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  const auto readings = readings_of(text);
  RC_ASSERT(std::count(readings.begin(), readings.end(), true) <= 1);
  RC_ASSERT(text != message || std::count(readings.begin(), readings.end(), true) == 1);
}

}  // namespace
}  // namespace sluice
