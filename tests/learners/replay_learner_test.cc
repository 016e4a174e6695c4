#include "learners/replay_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "drivers/virtual/compute_pace.h"

namespace sluice {
namespace {

using testing::ElementsAre;

// Wakes up late, as a real sleeper does.
class LateSleeper final : public Sleeper {
 public:
  Time now() const override { return now_; }
  void rest_until(Time moment) const override {
    if (moment > now_) {
      now_ = moment + from_us(3);
    }
  }
  void pass(Duration time) { now_ += time; }

 private:
  mutable Time now_ = from_us(1000);
};

Profile profile_of(const std::string& layers) {
  auto profile = parse_profile(R"({"name": "x", "batch": 1, "layers": [)" + layers + "]}", "test");
  check(static_cast<bool>(profile), "the test's profile is right");
  return *std::move(profile);
}

const Profile kNet = profile_of(
    R"({"name": "a", "params": 3, "forward_us": 10, "backward_us": 20},
       {"name": "b", "params": 0, "forward_us": 30, "backward_us": 40},
       {"name": "c", "params": 2, "forward_us": 0, "backward_us": 50})");

// Records when things happen, in microseconds; the late layers make the step wait.
class TimedHooks final : public StepHooks {
 public:
  explicit TimedHooks(LateSleeper& sleeper) : sleeper_(sleeper) {}

  bool before_layer(LayerId layer) override {
    const bool late = late_layers.contains(layer.index());
    if (late) {
      sleeper_.pass(from_us(100));
    }
    note("read", layer.index());
    return !late;
  }
  void forward_done() override {}
  void gradient_ready(LayerId layer) override { note("ready", layer.index()); }

  std::set<std::size_t> late_layers;
  std::vector<std::string> calls;

 private:
  void note(const std::string& what, std::size_t layer) {
    calls.push_back(what + " " + std::to_string(layer) + " at " +
                    std::to_string(std::llround(to_us(sleeper_.now()))));
  }

  LateSleeper& sleeper_;
};

// The same draws as the simulator's, and the same rounding.
TEST(ReplayLearnerTest, KeepsThePaceOfItsWorld) {
  Cluster cluster;
  cluster.topology = Topology(3, 1, 0);
  cluster.jitter = 0.3;
  cluster.special_hosts.push_back({.index = 1, .speed = 0.5});
  const ComputePace pace(cluster, {}, 7);
  NoHooks hooks;
  std::set<double> drawn;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto sleeper = std::make_shared<LateSleeper>();
    const auto learner = make_replay_learners(
        kNet, sleeper, [&](std::size_t r, Iteration t) { return pace.slowdown(r, t); })(rank);
    for (Iteration t = 0; t < 5; ++t) {
      const Time begin = sleeper->now();
      learner->step(t, hooks);
      const double us = to_us(sleeper->now() - begin);
      EXPECT_NEAR(us, 150 * pace.slowdown(rank, t), 3.1) << rank << " " << t;
      drawn.insert(pace.slowdown(rank, t));
    }
  }
  EXPECT_EQ(drawn.size(), 15U);
}

TEST(ReplayLearnerTest, SleepsTheTimesOfTheProfileAndIsNeverLaterThanOneWaking) {
  const auto sleeper = std::make_shared<LateSleeper>();
  const auto learner = make_replay_learners(kNet, sleeper)(0);
  TimedHooks hooks(*sleeper);
  learner->step(0, hooks);
  learner->step(1, hooks);
  EXPECT_THAT(hooks.calls, ElementsAre("read 0 at 1000", "read 1 at 1013", "read 2 at 1043",
                                       "ready 2 at 1093", "ready 1 at 1133", "ready 0 at 1153",
                                       "read 0 at 1153", "read 1 at 1163", "read 2 at 1193",
                                       "ready 2 at 1243", "ready 1 at 1283", "ready 0 at 1303"));
}

TEST(ReplayLearnerTest, AWaitForParametersShiftsAllThatFollows) {
  const auto sleeper = std::make_shared<LateSleeper>();
  const auto learner = make_replay_learners(kNet, sleeper)(0);
  TimedHooks hooks(*sleeper);
  hooks.late_layers = {1};
  learner->step(0, hooks);
  EXPECT_THAT(hooks.calls, ElementsAre("read 0 at 1000", "read 1 at 1113", "read 2 at 1146",
                                       "ready 2 at 1196", "ready 1 at 1236", "ready 0 at 1256"));
}

TEST(ReplayLearnerTest, TimeBetweenStepsIsNotMadeUpFor) {
  const auto sleeper = std::make_shared<LateSleeper>();
  const auto learner = make_replay_learners(kNet, sleeper)(0);
  TimedHooks hooks(*sleeper);
  learner->step(0, hooks);
  const std::vector<std::string> first = std::exchange(hooks.calls, {});
  EXPECT_EQ(first.back(), "ready 0 at 1153");
  sleeper->pass(from_us(500));  // for a checkpoint, say
  learner->step(1, hooks);
  EXPECT_EQ(hooks.calls.front(), "read 0 at 1653");
  EXPECT_EQ(hooks.calls.back(), "ready 0 at 1803");
}

TEST(ReplayLearnerTest, GradientsAreTheSameInEveryStepAndBuffer) {
  const auto sleeper = std::make_shared<LateSleeper>();
  const auto learner = make_replay_learners(kNet, sleeper)(0);
  TimedHooks hooks(*sleeper);
  ASSERT_EQ(learner->gradients().size(), 5U);
  learner->step(0, hooks);
  const std::vector<float> first(learner->gradients().begin(), learner->gradients().end());
  EXPECT_THAT(first, testing::Each(testing::Gt(0.0F)));
  for (float& value : learner->gradients()) {
    value *= 4;  // as a sum over equal workers would be
  }
  learner->step(1, hooks);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), learner->gradients().begin()));
  std::vector<float> other(first.size());
  learner->gradients_into(other);
  learner->step(2, hooks);
  EXPECT_EQ(other, first);
}

TEST(ReplayLearnerTest, KnowsNeitherLossNorAccuracy) {
  const auto sleeper = std::make_shared<LateSleeper>();
  const auto learner = make_replay_learners(kNet, sleeper)(0);
  TimedHooks hooks(*sleeper);
  EXPECT_FALSE(learner->step(0, hooks).has_value());
  EXPECT_FALSE(learner->evaluate().has_value());
}

TEST(ReplayLearnerTest, AllWorkersBeginAlike) {
  const auto factory = make_replay_learners(kNet, std::make_shared<LateSleeper>());
  const auto a = factory(0);
  const auto b = factory(1);
  EXPECT_TRUE(std::ranges::equal(a->parameters(), b->parameters()));
}

}  // namespace
}  // namespace sluice
