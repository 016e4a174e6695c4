#include "planner/network_fit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/check.h"
#include "planner/allreduce_cost.h"

namespace sluice {
namespace {

// The timings of a link with this latency and rate; repetitions vary a little.
LinkTimings made_link(std::size_t from, std::size_t to, double latency_us, double gbps) {
  LinkTimings link{from, to, {}};
  for (const Bytes bytes : {0, 4096, 65536, 1 << 20, 16 << 20}) {
    const double us = 2 * latency_us + static_cast<double>(bytes) * 8e-3 / gbps;
    link.timings.push_back({bytes, from_us(us), from_us(0.9 * us), from_us(1.2 * us)});
  }
  return link;
}

Survey made_survey(std::vector<std::string> hosts) {
  Survey survey;
  for (std::string& host : hosts) {
    survey.ranks.push_back(RankInfo{std::move(host), {}});
  }
  return survey;
}

bool close(double value, double truth) { return std::abs(value - truth) <= 1e-3 * truth; }

RC_GTEST_PROP(Link, IsWhatItsTimesWereMadeFrom, ()) {
  const auto latency = static_cast<double>(*rc::gen::inRange(1, 5000));
  const double gbps = *rc::gen::element(0.05, 1.0, 9.4, 100.0);
  const Link link = link_of(made_link(3, 1, latency, gbps));
  RC_ASSERT(link.from == 3U && link.to == 1U);
  RC_ASSERT(close(to_us(link.latency), latency));
  RC_ASSERT(close(to_us(link.min), 0.9 * latency));
  RC_ASSERT(close(link.gbps, gbps));
  RC_ASSERT(close(link.relative_range, 0.3));
}

TEST(Link, IsNotKnownByARoundTripAlone) {
  EXPECT_THROW(link_of({0, 1, {{0, from_us(50)}}}), InvariantError);
}

RC_GTEST_PROP(NetworkFit, OfEqualLinksIsEachOfThem, ()) {
  const auto latency = static_cast<double>(*rc::gen::inRange(1, 500));
  const double gbps = *rc::gen::element(0.5, 1.0, 25.0);
  Survey survey = made_survey({"a", "b", "c"});
  for (const auto& [from, to] : {RankPair{0, 1}, {1, 0}, {0, 2}, {2, 0}, {1, 2}, {2, 1}}) {
    survey.links.push_back(made_link(from, to, latency, gbps));
  }
  const NetworkFit fit = fit_network(survey);
  RC_ASSERT(close(to_us(fit.latency), latency));
  RC_ASSERT(close(fit.gbps, gbps));
  RC_ASSERT(fit.links.size() == 6U);
  RC_ASSERT(fit.points.size() == 5U);
  for (const Timing& point : fit.points) {
    RC_ASSERT(std::abs(relative_error(fit.line(), point)) < 1e-3);
  }
}

TEST(NetworkFit, OneOddLinkDoesNotChangeIt) {
  Survey survey = made_survey({"a", "b", "c"});
  for (const auto& [from, to] : {RankPair{0, 1}, {1, 0}, {0, 2}, {2, 0}, {1, 2}}) {
    survey.links.push_back(made_link(from, to, 40, 10));
  }
  survey.links.push_back(made_link(2, 1, 4000, 0.01));
  const NetworkFit fit = fit_network(survey);
  EXPECT_NEAR(to_us(fit.latency), 40, 0.1);
  EXPECT_NEAR(fit.gbps, 10, 0.01);
  EXPECT_GT(to_us(fit.points.front().max), 8000) << "but it shows in the maximum";
}

TEST(NetworkFit, LeavesOutWhatStaysInsideAMachine) {
  Survey survey = made_survey({"a", "a", "b"});
  survey.links = {made_link(0, 1, 1, 200), made_link(1, 0, 1, 200), made_link(0, 2, 50, 1)};
  EXPECT_NEAR(fit_network(survey).gbps, 1, 0.01);
  EXPECT_EQ(fit_network(survey).links.size(), 1U);
  Survey alone = made_survey({"a", "a"});
  alone.links = {made_link(0, 1, 1, 200)};
  EXPECT_NEAR(fit_network(alone).gbps, 200, 1);
}

TEST(NetworkFit, OfNothingIsADefect) {
  EXPECT_THROW(fit_network(made_survey({"a", "b"})), InvariantError);
}

}  // namespace
}  // namespace sluice
