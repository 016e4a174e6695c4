#include "compute/data/sharding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/check.h"

namespace sluice {
namespace {

Sharding any_sharding() {
  Sharding sharding;
  sharding.seed = *rc::gen::arbitrary<std::uint64_t>();
  sharding.batch = *rc::gen::inRange<std::int64_t>(1, 9);
  sharding.workers = *rc::gen::inRange<std::size_t>(1, 6);
  const std::int64_t joined = sharding.batch * static_cast<std::int64_t>(sharding.workers);
  sharding.samples = *rc::gen::inRange<std::int64_t>(joined, 12 * joined);
  return sharding;
}

std::vector<std::int64_t> epoch_of(const Sharding& sharding, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  const std::int64_t steps = sharding.steps_per_epoch();
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
      const auto batch = sharding.batch_of(rank, epoch * steps + step);
      indices.insert(indices.end(), batch.begin(), batch.end());
    }
  }
  return indices;
}

RC_GTEST_PROP(ShardingTest, EveryBatchIsFull, ()) {
  const Sharding sharding = any_sharding();
  const auto rank = *rc::gen::inRange<std::size_t>(0, sharding.workers);
  const auto iteration = *rc::gen::inRange<Iteration>(0, 1000);
  const auto batch = sharding.batch_of(rank, iteration);
  RC_ASSERT(static_cast<std::int64_t>(batch.size()) == sharding.batch);
  RC_ASSERT(batch == sharding.batch_of(rank, iteration));
}

// What is left out is less than one iteration's worth, and nothing is dealt twice.
RC_GTEST_PROP(ShardingTest, AnEpochDealsEverySampleAtMostOnce, ()) {
  const Sharding sharding = any_sharding();
  const auto indices = epoch_of(sharding, *rc::gen::inRange(0, 5));
  const std::set<std::int64_t> distinct(indices.begin(), indices.end());
  RC_ASSERT(distinct.size() == indices.size());
  RC_ASSERT(*distinct.begin() >= 0);
  RC_ASSERT(*distinct.rbegin() < sharding.samples);
  const std::int64_t joined = sharding.batch * static_cast<std::int64_t>(sharding.workers);
  RC_ASSERT(sharding.samples - static_cast<std::int64_t>(distinct.size()) < joined);
}

// The joined batch of an iteration does not depend on how many workers share it.
RC_GTEST_PROP(ShardingTest, WorkersSplitTheJoinedBatchInRankOrder, ()) {
  const Sharding sharding = any_sharding();
  Sharding alone = sharding;
  alone.batch = sharding.batch * static_cast<std::int64_t>(sharding.workers);
  alone.workers = 1;
  const auto iteration = *rc::gen::inRange<Iteration>(0, 100);
  std::vector<std::int64_t> joined;
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    const auto batch = sharding.batch_of(rank, iteration);
    joined.insert(joined.end(), batch.begin(), batch.end());
  }
  RC_ASSERT(joined == alone.batch_of(0, iteration));
}

TEST(ShardingTest, EverySizeIsPermuted) {
  for (std::int64_t samples = 1; samples <= 300; ++samples) {
    auto indices = epoch_of({7, samples, 1, 1}, 3);
    std::sort(indices.begin(), indices.end());
    ASSERT_EQ(static_cast<std::int64_t>(indices.size()), samples);
    for (std::int64_t i = 0; i < samples; ++i) {
      ASSERT_EQ(indices[static_cast<std::size_t>(i)], i);
    }
  }
}

TEST(ShardingTest, EpochsAndSeedsAreShuffledDifferently) {
  const Sharding sharding{1, 1000, 10, 2};
  const Sharding reseeded{2, 1000, 10, 2};
  std::vector<std::int64_t> sorted = epoch_of(sharding, 0);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(epoch_of(sharding, 0), sorted);
  EXPECT_NE(epoch_of(sharding, 0), epoch_of(sharding, 1));
  EXPECT_NE(epoch_of(sharding, 0), epoch_of(reseeded, 0));
}

// Over many epochs every sample comes first about equally often.
TEST(ShardingTest, PlacesAreUniform) {
  constexpr int kEpochs = 20'000;
  for (const std::int64_t samples : {5, 8, 13}) {
    std::vector<int> first(static_cast<std::size_t>(samples));
    const Sharding sharding{3, samples, samples, 1};
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      ++first[static_cast<std::size_t>(sharding.batch_of(0, epoch).front())];
    }
    const double expected = static_cast<double>(kEpochs) / static_cast<double>(samples);
    for (const int count : first) {
      EXPECT_NEAR(count, expected, 0.1 * expected) << samples << " samples";
    }
  }
}

TEST(ShardingTest, TooFewSamplesGiveNoStep) {
  const Sharding sharding{1, 7, 4, 2};
  EXPECT_EQ(sharding.steps_per_epoch(), 0);
  EXPECT_THROW(sharding.batch_of(0, 0), InvariantError);
}

}  // namespace
}  // namespace sluice
