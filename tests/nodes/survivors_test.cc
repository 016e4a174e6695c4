// Workers that take local steps, and lose one whom their sums need.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "nodes/catch_ups.h"
#include "nodes/shuffled_runs.h"
#include "support/regrouping.h"

namespace sluice {
namespace {

using testing::any_cadence;
using testing::any_seed;
using testing::kLayers;
using testing::local_job;
using testing::regroup;
using testing::rejoin;
using testing::ShuffledRun;
using testing::ShuffledWorld;
using testing::ToyLearner;

constexpr Iteration kPhase = 14;

const UpdateRule kRuleOfSurvivors{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

Job any_job(std::size_t workers) {
  Cadence cadence = any_cadence();
  cadence.synchronous = 0;
  Job job = local_job(cadence, workers);
  job.strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority, Order::kAfterBackward);
  job.strategy.codec = *rc::gen::element(Codec::kNone, Codec::kNone, Codec::kBf16);
  job.strategy.collective = *rc::gen::element<std::optional<Collective>>(
      std::nullopt, Collective::kRing, Collective::kRecursiveDoubling, Collective::kHalvingDoubling,
      Collective::kBinaryTree, Collective::kDirect);
  return job;
}

std::vector<float> global_of(ShuffledRun& run, std::size_t rank) {
  const auto values = run.world.state().workspace(NodeId(rank)).global_parameters();
  return {values.begin(), values.end()};
}

bool agree(ShuffledRun& run, const std::vector<HostId>& absent) {
  std::vector<std::vector<float>> all;
  for (std::size_t rank = 0; rank < run.learners.size(); ++rank) {
    if (std::ranges::find(absent, HostId(rank)) == absent.end()) {
      all.push_back(global_of(run, rank));
    }
  }
  return std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end();
}

// ---- who takes from whom ----

TEST(CatchUps, TakeFromTheFirstThatHasTheLastSum) {
  const Cadence cadence{.every = 4};
  const std::vector<std::int64_t> fragments{0, 0};
  const CatchUps catch_ups = find_catch_ups(
      {{NodeId(0), {4, 8}}, {NodeId(2), {8, 8}}, {NodeId(3), {8, 4}}}, fragments, cadence, 9);
  EXPECT_EQ(catch_ups.all, (std::vector<CatchUp>{{NodeId(0), NodeId(2), ChunkId(0), 8},
                                                 {NodeId(3), NodeId(0), ChunkId(1), 8}}));
  EXPECT_TRUE(catch_ups.given_up.empty());
}

TEST(CatchUps, GiveUpASumThatNobodyHasAndThatWouldBeDueLater) {
  const Cadence cadence{.every = 4, .delay = 2};
  const std::vector<std::int64_t> fragments{0, 0};
  const CatchUps catch_ups =
      find_catch_ups({{NodeId(0), {4, 8}}, {NodeId(1), {4, 4}}}, fragments, cadence, 9);
  EXPECT_EQ(catch_ups.given_up, (std::vector<GivenUpSum>{{ChunkId(0), 8}}));
  EXPECT_EQ(catch_ups.all.size(), 1U);
  EXPECT_TRUE(find_catch_ups({{NodeId(0), {4, 4}}}, fragments, cadence, 10).given_up.empty())
      << "it was due before";
}

// ---- in a shuffled world ----

// Nobody notices that there was once one more.
RC_GTEST_PROP(Survivors, SumAsWorkersDoThatWereNeverMore, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 5);
  const auto absent = *rc::gen::inRange<std::size_t>(0, workers + 1);
  Job job = any_job(workers);
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t rank = 0; rank <= workers; ++rank) {
    if (rank != absent) {
      learners.push_back(std::make_unique<ToyLearner>(kLayers, rank));
    }
  }
  const Assembly never_more = assemble(job);
  ShuffledWorld world(job, never_more.protocols,
                      {.learners = learners,
                       .chunks = never_more.chunks.get(),
                       .rule = kRuleOfSurvivors,
                       .strategy = job.strategy},
                      kPhase, any_seed());
  RC_ASSERT(world.run());

  job.topology = Topology(workers + 1, 1, 0);
  job.absent = {HostId(absent)};
  ShuffledRun once_more(job, kRuleOfSurvivors, any_seed(), kPhase);
  once_more.world.kill(HostId(absent));
  RC_ASSERT(once_more.run());
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const auto expected = learners[rank]->parameters();
    const auto actual = once_more.parameters(rank < absent ? rank : rank + 1);
    RC_ASSERT(std::ranges::equal(expected, actual));
  }
}

// Whenever one is lost, the others take all their steps, and have the same global parameters again
// when they have regrouped; so does one that comes back.
RC_GTEST_PROP(Survivors, AgreeAgain, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(2, 6);
  const HostId victim(*rc::gen::inRange<std::size_t>(0, workers));
  const HostId donor((victim.index() + 1) % workers);
  ShuffledRun run(any_job(workers), kRuleOfSurvivors, any_seed(), kPhase);
  auto left = *rc::gen::inRange(0, 3000);
  run.world.disturb = [&](ShuffledWorld& world) {
    if (left-- == 0) {
      world.kill(victim);
    }
  };
  RC_ASSERT(run.run());
  run.world.disturb = [](ShuffledWorld&) {};
  if (!run.world.outages().is_dead(victim)) {
    run.world.kill(victim);
  }
  const std::size_t taken = regroup(run, {victim}, kPhase);
  RC_TAG(taken > 0 ? "some had more sums" : "all had the same sums");
  RC_ASSERT(agree(run, {victim}));
  RC_ASSERT(run.run_on(2 * kPhase));
  RC_ASSERT(agree(run, {victim}));
  rejoin(run, victim, donor, 2 * kPhase);
  RC_ASSERT(run.run_on(3 * kPhase));
  RC_ASSERT(agree(run, {}));
}

// What a sum has cost is made up for: with the mean of workers as outer step, the next one leads
// all of those that are left to the mean of where they are.
TEST(Survivors, LoseNoStepOfTheirOwn) {
  constexpr Iteration kEvery = 4;
  Job job = local_job({.every = kEvery}, 3);
  job.strategy.collective = Collective::kRing;  // nobody has a sum without the help of all
  ShuffledRun run(job, kRuleOfSurvivors, 5, kEvery + 2);
  run.world.disturb = [killed = false](ShuffledWorld& world) mutable {
    if (world.iteration(0) == kEvery - 1 && !killed) {
      killed = true;
      world.kill(HostId(2));
    }
  };
  ASSERT_TRUE(run.run());
  run.world.disturb = [](ShuffledWorld&) {};
  ShuffledRun alone(local_job({.every = 100}, 3), kRuleOfSurvivors, 5, 2 * kEvery);
  ASSERT_TRUE(alone.run());
  regroup(run, {HostId(2)}, kEvery + 2);
  ASSERT_TRUE(run.run_on(2 * kEvery));
  const auto first = alone.parameters(0);
  const auto second = alone.parameters(1);
  const auto mean = run.parameters(0);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], (first[i] + second[i]) / 2, 1e-5F);
  }
}

}  // namespace
}  // namespace sluice
