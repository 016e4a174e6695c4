#include "session/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
