#include "report/page/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

LimitFigures figures(IterationTimes times, std::optional<double> use = {}) {
  return {.times = times, .link_use = use};
}

std::string words_of(const LimitFigures& of) {
  const Statement statement = statement_of(of);
  std::string text = statement.headline;
  for (const std::string& sentence : statement.sentences) {
    text += " " + sentence;
  }
  return text;
}

TEST(Limits, AreComputeIfHardlyAnythingWaits) {
  const LimitFigures of = figures({.compute = 950, .communication = 40, .others = 10}, 0.99);
  EXPECT_EQ(limit_of(of), Limit::kCompute);
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("Compute limits"), HasSubstr("95 % of an iteration"),
                                  Not(HasSubstr("instead of"))));
}

TEST(Limits, AreTheBandwidthIfLinksAreFull) {
  const LimitFigures of = figures({.compute = 380, .communication = 620}, 0.94);
  EXPECT_EQ(limit_of(of), Limit::kBandwidth);
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("62 % of an iteration waits for the network"),
                                  HasSubstr("used at 94 %"), HasSubstr("Fewer bytes"),
                                  HasSubstr("would not"), HasSubstr("2.63 times the speed")));
}

TEST(Limits, AreWaitingIfLinksHaveRoom) {
  LimitFigures of = figures({.compute = 500, .communication = 500}, 0.4);
  EXPECT_EQ(limit_of(of), Limit::kWaiting);
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("have room"), HasSubstr("preset p3")));
  of.has_priority = true;
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("--slice"), Not(HasSubstr("preset p3"))));
  of.link_use.reset();
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("not known"), Not(HasSubstr("have room"))));
}

TEST(Limits, AreTheLargestOtherWait) {
  EXPECT_EQ(limit_of(figures({.compute = 50, .communication = 10, .others = 40}, 0.99)),
            Limit::kOthers);
  EXPECT_EQ(limit_of(figures({.compute = 50, .communication = 10, .aggregation = 40})),
            Limit::kAggregation);
  EXPECT_EQ(limit_of(figures({.compute = 50, .communication = 10, .loading = 40})),
            Limit::kLoading);
  EXPECT_THAT(words_of(figures({.compute = 50, .others = 50})), HasSubstr("Slow workers"));
  EXPECT_THAT(words_of(figures({.compute = 50, .aggregation = 50})), HasSubstr("--servers"));
  EXPECT_THAT(words_of(figures({.compute = 50, .loading = 50})), HasSubstr("--loaders"));
}

// Only workers in lock step wait for gradients of others.
TEST(Limits, NameWhatTheAlgorithmWaitsFor) {
  const auto words = [](Algorithm algorithm) {
    LimitFigures of = figures({.compute = 50, .others = 50});
    of.algorithm = algorithm;
    return words_of(of);
  };
  for (const AlgorithmTraits& traits : kAlgorithms) {
    const bool of_others = words(traits.value).find("for gradients of other") != std::string::npos;
    EXPECT_EQ(of_others, traits.replicas_agree()) << traits.name;
  }
  EXPECT_THAT(words(Algorithm::kSsp), HasSubstr("--staleness"));
  EXPECT_THAT(words(Algorithm::kAsp), HasSubstr("the servers' answers"));
  EXPECT_THAT(words(Algorithm::kGossip), HasSubstr("its own host has mixed in"));
}

TEST(Limits, TakeTheAlgorithmFromTheSettingsOfTheRun) {
  RunData run;
  run.summary = {{"iteration_us", 100},
                 {"breakdown", {{"computation_us", 50}, {"global_aggregation_wait_us", 50}}}};
  EXPECT_EQ(limits_of(run).headline, "Slow workers limit this run.");
  run.settings.push_back({.key = "algorithm", .value = "\"gosgd\"", .origin = ""});
  EXPECT_EQ(limits_of(run).headline, "Busy hosts limit this run.");
}

TEST(Limits, TellHowFarTheBoundIs) {
  LimitFigures of = figures({.compute = 6600, .communication = 2200}, 0.94);
  of.bound_us = 8000;
  EXPECT_THAT(words_of(of), AllOf(HasSubstr("No order"), HasSubstr("10 % above")));
  of.bound_us = 6600;
  EXPECT_THAT(words_of(of), Not(HasSubstr("No order")));
}

TEST(Limits, AreUnknownAfterAShortRun) {
  EXPECT_EQ(limit_of({}), Limit::kUnknown);
  EXPECT_THAT(words_of({}), HasSubstr("too short"));
}

RC_GTEST_PROP(Limits, AlwaysHaveWordsAndNameALargePart, ()) {
  const auto part = [] { return static_cast<double>(*rc::gen::inRange(0, 1000)); };
  const IterationTimes times{.compute = part(),
                             .communication = part(),
                             .others = part(),
                             .aggregation = part(),
                             .loading = part(),
                             .rest = part()};
  const LimitFigures of = figures(
      times, *rc::gen::element(std::optional<double>(), std::optional(0.2), std::optional(0.95)));
  const Limit limit = limit_of(of);
  RC_ASSERT(!statement_of(of).headline.empty());
  RC_ASSERT((limit == Limit::kUnknown) == (times.total() == 0));
  if (limit == Limit::kLoading) {
    RC_ASSERT(times.loading >= times.communication && times.loading >= times.others);
  }
  RC_ASSERT(words_of(of).find("nan") == std::string::npos);
}

// From the summaries of runs.

RunData run_with(const char* summary) {
  RunData run;
  run.summary = nlohmann::json::parse(summary);
  return run;
}

TEST(Limits, AccountForTheTimeOfAnIteration) {
  const auto times = iteration_times(run_with(R"({"iteration_us": 100,
      "breakdown": {"computation_us": 60, "local_aggregation_us": 1,
                    "global_aggregation_work_us": 2, "global_aggregation_wait_us": 3,
                    "communication_exposed_us": 4},
      "loading": {"batches": 4, "waited_s": 80e-6}})"));
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->compute, 60);
  EXPECT_DOUBLE_EQ(times->aggregation, 3);
  EXPECT_DOUBLE_EQ(times->others, 3);
  EXPECT_DOUBLE_EQ(times->communication, 4);
  EXPECT_DOUBLE_EQ(times->loading, 20);
  EXPECT_DOUBLE_EQ(times->rest, 10);
  EXPECT_FALSE(iteration_times(run_with(R"({"iteration_us": 100})")));
}

TEST(Limits, KnowHowMuchOfALinkIsUsed) {
  EXPECT_DOUBLE_EQ(
      *link_use(run_with(R"({"egress_utilisation": 0.5, "ingress_utilisation": 0.7})")), 0.7);
  // 0.5 GB in 10 s on 1 Gb/s.
  EXPECT_DOUBLE_EQ(*link_use(run_with(R"({"train_s": 10, "network": {"gbps": 1},
      "by_host": [{"sent_bytes": 2e8}, {"sent_bytes": 5e8}]})")),
                   0.4);
  EXPECT_DOUBLE_EQ(*link_use(run_with(R"({"train_s": 10, "clock": "virtual",
      "by_host": [{"egress_busy_s": 8, "ingress_busy_s": 9}]})")),
                   0.9);
  // Threads of a process have no link.
  EXPECT_FALSE(link_use(run_with(R"({"train_s": 10, "by_host": [{"egress_busy_s": 8}]})")));
  EXPECT_FALSE(link_use(run_with(R"({"train_s": 10, "clock": "virtual", "by_host": 3})")));
}

}  // namespace
}  // namespace sluice
