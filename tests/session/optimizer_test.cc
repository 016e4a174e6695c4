#include "session/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/presets.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Extent kExtent{.workers = 4, .batch = 8, .iterations = 100, .per_epoch = 10};

TEST(OptimizerTest, EpochsBecomeIterations) {
  const OptimizerSpec spec{.learning_rate = 0.1,
                           .warmup_epochs = 2.54,
                           .decay_epochs = {3, 7},
                           .momentum = 0.5,
                           .weight_decay = 0.25};
  const UpdateRule rule = rule_of(spec, kExtent);
  EXPECT_EQ(rule.rate.base, 0.1F);
  EXPECT_EQ(rule.rate.warmup, 25) << "to the nearest iteration";
  EXPECT_THAT(rule.rate.drops, ElementsAre(30, 70));
  EXPECT_EQ(rule.momentum, 0.5F);
  EXPECT_EQ(rule.weight_decay, 0.25F);
}

TEST(OptimizerTest, TheRuleHasTheOptimizerItsScheduleAndItsLimits) {
  OptimizerSpec spec;
  spec.optimizer = Optimizer::kAdam;
  spec.options.beta1 = 0.5;
  spec.schedule = RateShape::kCosine;
  spec.warmup_iterations = 5;
  spec.warmup_epochs = 1;
  spec.warmup_from = 0.5;
  spec.final_share = 0.25;
  spec.by_epoch = true;
  spec.clip_norm = 2;
  const UpdateRule rule = rule_of(spec, kExtent);
  EXPECT_EQ(rule.optimizer, Optimizer::kAdam);
  EXPECT_EQ(rule.options, spec.options);
  EXPECT_EQ(rule.rate.shape, RateShape::kCosine);
  EXPECT_EQ(rule.rate.warmup, 15);
  EXPECT_EQ(rule.rate.warmup_from, 0.5F);
  EXPECT_EQ(rule.rate.end, 100);
  EXPECT_EQ(rule.rate.final_share, 0.25F);
  EXPECT_EQ(rule.rate.steps_of, 10);
  EXPECT_EQ(rule.clip_norm, 2);
}

TEST(OptimizerTest, StateIsWhereTheUpdatesAre) {
  const auto bytes = [](std::string_view preset, Optimizer optimizer, const Topology& topology) {
    Job job;
    job.layers = lay_out({"a", "b"}, {60, 40});
    job.topology = topology;
    job.strategy = find_preset(preset)->strategy;
    UpdateRule rule;
    rule.optimizer = optimizer;
    return state_bytes(rule, assemble(job));
  };
  EXPECT_THAT(bytes("kvstore", Optimizer::kAdam, Topology(1, 1, 1)), ElementsAre(0, 800))
      << "in the shard of the server";
  EXPECT_THAT(bytes("wfbp", Optimizer::kSgd, Topology(2, 2, 0)), ElementsAre(800, 800))
      << "in each replica";
}

TEST(OptimizerTest, AnUpdateMovesItsState) {
  UpdateRule rule;
  EXPECT_EQ(update_traffic(rule), 1);
  rule.optimizer = Optimizer::kAdam;
  EXPECT_EQ(update_traffic(rule), 7.0 / 5);
}

TEST(OptimizerTest, WithoutAScheduleTheRateStays) {
  const UpdateRule rule = rule_of({}, kExtent);
  EXPECT_EQ(rule.rate.warmup, 0);
  EXPECT_THAT(rule.rate.drops, IsEmpty());
  EXPECT_EQ(rule.rate.at(1), rule.rate.at(100));
}

TEST(OptimizerTest, TheRateGrowsWithTheWorkersOnlyIfAskedTo) {
  OptimizerSpec spec;
  spec.learning_rate = 0.125;
  EXPECT_EQ(learning_rate_of(spec, kExtent), 0.125);
  spec.scale_by_workers = true;
  EXPECT_EQ(learning_rate_of(spec, kExtent), 0.5);
  EXPECT_EQ(rule_of(spec, kExtent).rate.base, 0.5F);
}

// Goyal et al., which the Analysis paper follows: from the rate of one worker to n times it.
TEST(OptimizerTest, AWarmUpRisesFromTheRateOfOneWorker) {
  OptimizerSpec spec;
  spec.learning_rate = 0.125;
  spec.scale_by_workers = true;
  spec.warmup_epochs = 2;
  const RateSchedule rate = rule_of(spec, kExtent).rate;
  EXPECT_FLOAT_EQ(rate.at(1), 0.125F);
  EXPECT_FLOAT_EQ(rate.at(11), (0.125F + 0.5F) / 2);
  EXPECT_FLOAT_EQ(rate.at(21), 0.5F);
}

}  // namespace
}  // namespace sluice
