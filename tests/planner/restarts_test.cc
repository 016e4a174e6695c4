#include "planner/restarts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

// The same, iteration by iteration.
RestartCosts step_by_step(const RestartedTraining& training, const std::vector<double>& kills_s) {
  RestartCosts costs;
  double now = 0;
  Iteration saved = 0;
  auto kill = kills_s.begin();
  const auto passes = [&](double seconds) {
    const bool killed = kill != kills_s.end() && *kill < now + seconds;
    now += killed ? 0 : seconds;
    return !killed;
  };
  for (;;) {
    Iteration made = saved;
    while (made < training.iterations && passes(training.iteration_s)) {
      ++made;
      if (made % training.checkpoint_every == 0 && made < training.iterations) {
        if (!passes(training.checkpoint_s)) {
          break;
        }
        saved = made;
        ++costs.checkpoints;
      }
    }
    if (made == training.iterations) {
      costs.total_s = now;
      return costs;
    }
    costs.repeated += made - saved;
    for (now = *kill; kill != kills_s.end() && *kill <= now; ++kill) {
      ++costs.restarts;
      now = *kill + training.restart_s;
    }
  }
}

RC_GTEST_PROP(RestartProperties, CostWhatAWalkThroughTheIterationsCosts, ()) {
  const RestartedTraining training{.iterations = *rc::gen::inRange<Iteration>(1, 60),
                                   .iteration_s = *rc::gen::element(1.0, 2.0, 0.5),
                                   .checkpoint_every = *rc::gen::inRange<Iteration>(1, 20),
                                   .checkpoint_s = *rc::gen::element(0.0, 1.0, 3.0),
                                   .restart_s = *rc::gen::element(0.0, 2.0, 7.0)};
  auto kills = *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 120), [](int at) { return at + 0.25; }));
  std::ranges::sort(kills);
  const RestartCosts quick = with_kills(training, kills);
  const RestartCosts walked = step_by_step(training, kills);
  RC_ASSERT(quick.total_s == walked.total_s);
  RC_ASSERT(quick.restarts == walked.restarts);
  RC_ASSERT(quick.repeated == walked.repeated);
  RC_ASSERT(quick.checkpoints == walked.checkpoints);
}

TEST(Restarts, AKillCostsWhatIsMadeAgainAndTheRestart) {
  const RestartedTraining training{
      .iterations = 100, .iteration_s = 1, .checkpoint_every = 30, .restart_s = 20};
  const RestartCosts costs = with_kills(training, std::vector{45.5});
  EXPECT_EQ(costs.repeated, 15);
  EXPECT_EQ(costs.restarts, 1);
  EXPECT_EQ(costs.checkpoints, 3);
  EXPECT_DOUBLE_EQ(costs.total_s, 45.5 + 20 + 70);
  EXPECT_DOUBLE_EQ(with_kills(training, {}).total_s, 100);
}

}  // namespace
}  // namespace sluice
