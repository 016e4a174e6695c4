#include "planner/merged_training.h"

#include <gtest/gtest.h>

#include "learners/idle_learner.h"
#include "nodes/presets.h"
#include "planner/layer_times.h"
#include "support/nets.h"
#include "support/threaded.h"
#include "support/whole_numbers.h"

namespace sluice {
namespace {

using testing::timed_allreduce;
using testing::timed_net;

const Profile kNet = timed_net(20, {{10, 1}, {10, 2}, {2, 2}, {10, 4}});
const AllReduceCost kDear = timed_allreduce(1000);
const AllReduceCost kCheap = timed_allreduce(0);
constexpr Iteration kLongRun = 10'000;

TEST(MergePolicy, TheFirstLookMakesAPlanAndIsNoReplan) {
  MergePolicy policy(Merge::kOptimal, kLongRun);
  EXPECT_TRUE(policy.plan().groups.empty());
  const Iteration first = policy.next_look(0);
  policy.look(kNet, serial(kDear));
  EXPECT_EQ(policy.plan().groups, merge_optimal(kNet, kDear).groups);
  EXPECT_EQ(policy.plan().iteration, merge_optimal(kNet, kDear).iteration);
  EXPECT_EQ(policy.replans(), 0);
  EXPECT_GT(policy.next_look(first) - first, first);
}

TEST(MergePolicy, AGreedyPlanIsAlgorithmOne) {
  const AllReduceCost cost = timed_allreduce(6);
  MergePolicy policy(Merge::kGreedy, kLongRun);
  policy.look(kNet, serial(cost));
  EXPECT_EQ(policy.plan().groups, merge_greedy(kNet, cost).groups);
}

TEST(MergePolicy, DriftChangesThePlan) {
  MergePolicy policy(Merge::kOptimal, kLongRun);
  policy.look(kNet, serial(kDear));
  policy.look(kNet, serial(kCheap));
  EXPECT_EQ(policy.plan().groups, separate_layers(kNet, serial(kCheap)).groups);
  EXPECT_EQ(policy.plan().as, MergedAs::kLayers);
  EXPECT_EQ(policy.replans(), 1);
}

// As the training ran before the first look.
TEST(MergePolicy, WithoutGainEachLayerStaysOnItsOwn) {
  MergePolicy policy(Merge::kOptimal, kLongRun);
  policy.look(kNet, {.alone = kDear, .busy = kCheap});
  EXPECT_EQ(policy.plan().as, MergedAs::kLayers);
  EXPECT_EQ(policy.plan().groups.size(), 4U);
  EXPECT_EQ(policy.replans(), 0);
}

// Another plan would be better now, but by less than the measurement error. The prediction of the
// current plan follows the measurement.
TEST(MergePolicy, ASmallGainDoesNot) {
  const Profile net = timed_net(1000, {{10, 1}, {10, 2}, {2, 2}, {10, 4}});
  MergePolicy policy(Merge::kOptimal, kLongRun);
  policy.look(net, serial(timed_allreduce(100)));
  const auto groups = policy.plan().groups;
  ASSERT_NE(merge_optimal(net, timed_allreduce(1)).groups, groups);
  policy.look(net, serial(timed_allreduce(1)));
  EXPECT_EQ(policy.plan().groups, groups);
  EXPECT_EQ(policy.plan().iteration, merged_iteration(net, timed_allreduce(1), groups));
  EXPECT_EQ(policy.replans(), 0);
}

TEST(MergePolicy, LooksMoreRarelyWhileNothingChanges) {
  MergePolicy policy(Merge::kOptimal, kLongRun);
  policy.look(kNet, serial(kDear));
  const Iteration usual = policy.next_look(0);
  policy.look(kNet, serial(kDear));
  EXPECT_EQ(policy.next_look(0), 2 * usual);
  policy.look(kNet, serial(kCheap));
  EXPECT_EQ(policy.next_look(0), usual);
}

// Its pause must not fall into the half of the run whose mean is reported.
TEST(MergePolicy, TheFirstLookComesBeforeTheMiddleOfAShortRun) {
  for (const Iteration iterations : {6, 9, 12, 16, 24, 1000}) {
    const Iteration first = MergePolicy(Merge::kOptimal, iterations).next_look(0);
    EXPECT_LT(first, iterations / 2) << iterations << " iterations";
    EXPECT_GE(first, 2);
  }
}

// Processes with different measurements continue with the same plan.
TEST(MergePolicy, AdoptsWhatAnotherHasDecided) {
  MergePolicy one(Merge::kOptimal, kLongRun);
  MergePolicy other(Merge::kOptimal, kLongRun);
  one.look(kNet, serial(kDear));
  other.look(kNet, serial(kCheap));
  ASSERT_NE(other.plan().groups, one.plan().groups);
  one.look(kNet, serial(kDear));
  other.adopt(one.decision());
  EXPECT_EQ(other.plan().groups, one.plan().groups);
  EXPECT_EQ(other.next_look(0), one.next_look(0));
}

// ---- on threads ---------------------------------------------------------------------------------

const std::vector<std::int64_t> kLayers{37, 0, 500, 12, 260, 3};
const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

std::vector<std::unique_ptr<Learner>> idle_learners(const std::vector<Layer>& layers,
                                                    std::size_t workers) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(std::make_unique<IdleLearner>(layers));
  }
  return learners;
}

std::vector<float> parameters_of(Learner& learner) {
  return {learner.parameters().begin(), learner.parameters().end()};
}

TEST(MergedTrainingThreads, APlanChangesWhenAndNotWhat) {
  constexpr Iteration kIterations = 30;
  const Topology topology(3, 1, 0);
  const auto by_layer = testing::whole_numbers(kLayers, 3);
  testing::run_threaded(by_layer, topology, find_preset("wfbp")->strategy, kRule, kIterations);

  const auto merged = testing::whole_numbers(kLayers, 3);
  const Job job = testing::job_for(merged, topology, find_preset("mg-wfbp")->strategy);
  std::optional<TrainingState> state;
  std::vector<std::size_t> chunks;
  const MergeOutcome outcome =
      train_merged({.job = job,
                    .iterations = kIterations,
                    .train =
                        [&](const Assembly& assembly, Iteration last, Observer& observer) {
                          if (!state) {
                            state.emplace(topology, merged, *assembly.chunks, job.strategy, kRule);
                          }
                          chunks.push_back(assembly.chunks->size());
                          testing::run_phase(assembly, *state, last, &observer);
                          return true;
                        },
                    .train_aside =
                        [&](const Assembly& assembly, Iteration last, Observer& observer) {
                          const auto learners = idle_learners(assembly.job.layers, 3);
                          TrainingState aside = testing::state_for(learners, assembly, {});
                          testing::run_phase(assembly, aside, last, &observer);
                        },
                    .agree = {}});
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks.front(), 5U);
  EXPECT_EQ(chunks.back(), outcome.policy.plan().groups.size());
  EXPECT_GT(outcome.policy.cost().alone.time(1'000'000), Duration{0});
  EXPECT_GT(outcome.measured, Duration{0});
  for (const auto& learner : merged) {
    EXPECT_EQ(parameters_of(*learner), parameters_of(*by_layer.front()));
  }
}

TEST(MergedTrainingThreads, AShortRunIsNotPlanned) {
  const auto learners = testing::whole_numbers(kLayers, 2);
  const Job job = testing::job_for(learners, Topology(2, 1, 0), find_preset("mg-wfbp")->strategy);
  std::vector<Iteration> ends;
  const MergeOutcome outcome =
      train_merged({.job = job,
                    .iterations = 5,
                    .train =
                        [&](const Assembly&, Iteration last, Observer&) {
                          ends.push_back(last);
                          return true;
                        },
                    .train_aside = [](const auto&...) { FAIL() << "nothing should be measured"; },
                    .agree = {}});
  EXPECT_EQ(ends, std::vector<Iteration>{5});
  EXPECT_TRUE(outcome.policy.plan().groups.empty());
}

TEST(MergedTrainingThreads, ARunThatIsStoppedIsNotPlannedEither) {
  const auto learners = testing::whole_numbers(kLayers, 2);
  const Job job = testing::job_for(learners, Topology(2, 1, 0), find_preset("mg-wfbp")->strategy);
  int phases = 0;
  train_merged({.job = job,
                .iterations = 500,
                .train =
                    [&](const Assembly&, Iteration, Observer&) {
                      ++phases;
                      return false;
                    },
                .train_aside = [](const auto&...) { FAIL() << "nothing should be measured"; },
                .agree = {}});
  EXPECT_EQ(phases, 1);
}

}  // namespace
}  // namespace sluice
