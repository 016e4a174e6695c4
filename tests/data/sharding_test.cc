#include "data/sharding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
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

// At any position, even twice at the same one.
Sharding any_bucketed() {
  Sharding sharding = any_sharding();
  sharding.bucket_ends = *rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::inRange<std::int64_t>(1, sharding.samples + 1));
  sharding.bucket_ends.push_back(sharding.samples);
  std::ranges::sort(sharding.bucket_ends);
  return sharding;
}

Sharding with_shares(Sharding sharding) {
  for (std::size_t w = 0; w < sharding.workers; ++w) {
    sharding.shares.push_back(*rc::gen::inRange(1, 10));
  }
  return sharding;
}

// Then all workers do the same number of iterations, and the mean over workers is the mean over
// samples.
RC_GTEST_PROP(ShardingTest, BatchesOfAnIterationAreEquallyLarge, ()) {
  const Sharding sharding = any_sharding();
  const auto iteration = *rc::gen::inRange<Iteration>(0, 1000);
  const std::size_t size = sharding.batch_of(0, iteration).size();
  RC_ASSERT(size > 0U);
  RC_ASSERT(static_cast<std::int64_t>(size) <= sharding.batch);
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    RC_ASSERT(sharding.batch_of(rank, iteration).size() == size);
  }
}

RC_GTEST_PROP(ShardingTest, KnowsHowManySamplesAnIterationHas, ()) {
  const Sharding sharding =
      *rc::gen::arbitrary<bool>() ? any_bucketed() : with_shares(any_bucketed());
  const auto iteration = *rc::gen::inRange<Iteration>(0, 1000);
  std::size_t sum = 0;
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    sum += sharding.batch_of(rank, iteration).size();
  }
  RC_ASSERT(sharding.samples_of(iteration) == static_cast<std::int64_t>(sum));
}

// Weights make the mean over the workers the mean over all samples.
RC_GTEST_PROP(ShardingTest, WeightsAreBySamples, ()) {
  const Sharding sharding =
      *rc::gen::arbitrary<bool>() ? any_bucketed() : with_shares(any_bucketed());
  const auto iteration = *rc::gen::inRange<Iteration>(0, 1000);
  const auto mean =
      static_cast<double>(sharding.samples_of(iteration)) / static_cast<double>(sharding.workers);
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    const auto size = static_cast<double>(sharding.batch_of(rank, iteration).size());
    RC_ASSERT(size > 0);
    RC_ASSERT(std::abs(sharding.weight_of(rank, iteration) - size / mean) < 1e-12);
  }
}

// Shares only cut the joined batch elsewhere.
RC_GTEST_PROP(ShardingTest, SharesAreOfTheSameJoinedBatch, ()) {
  const Sharding equal = any_sharding();
  const Sharding shared = with_shares(equal);
  const auto iteration = *rc::gen::inRange<Iteration>(0, 100);
  std::vector<std::int64_t> joined;
  std::vector<std::int64_t> parts;
  for (std::size_t rank = 0; rank < equal.workers; ++rank) {
    for (const auto& [of, all] : {std::pair{&equal, &joined}, std::pair{&shared, &parts}}) {
      const auto batch = of->batch_of(rank, iteration);
      all->insert(all->end(), batch.begin(), batch.end());
    }
  }
  RC_ASSERT(joined == parts);
}

RC_GTEST_PROP(ShardingTest, DealsAsNearToTheSharesAsItCan, ()) {
  const Sharding sharding = with_shares(any_sharding());
  const auto workers = static_cast<std::int64_t>(sharding.workers);
  const auto total = workers + *rc::gen::inRange<std::int64_t>(0, 1000);
  const auto counts = deal(total, sharding.shares);
  const double sum = std::accumulate(sharding.shares.begin(), sharding.shares.end(), 0.0);
  RC_ASSERT(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == total);
  for (std::size_t w = 0; w < counts.size(); ++w) {
    const double exact = static_cast<double>(total) * sharding.shares[w] / sum;
    RC_ASSERT(counts[w] >= 1);
    RC_ASSERT(exact < 1 || std::abs(static_cast<double>(counts[w]) - exact) <= workers);
    RC_ASSERT(total < 10 * 9 * workers || std::abs(static_cast<double>(counts[w]) - exact) < 1);
  }
}

TEST(ShardingTest, DealsByShares) {
  EXPECT_EQ(deal(90, {2, 2, 1}), (std::vector<std::int64_t>{36, 36, 18}));
  EXPECT_EQ(deal(3, {1000, 1, 1}), (std::vector<std::int64_t>{1, 1, 1}));
}

// So text makes stragglers: in most iterations the workers' sentences differ in length.
TEST(ShardingTest, WorkersDrawTheirOwnBuckets) {
  const Sharding sharding{1, 4000, 10, 4, {1000, 2000, 3000, 4000}};
  int mixed = 0;
  for (Iteration t = 0; t < 100; ++t) {
    std::set<std::int64_t> buckets;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      buckets.insert(sharding.batch_of(rank, t).front() / 1000);
    }
    mixed += buckets.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(mixed, 90);
}

// Without buckets, no iteration is left with only a few samples.
RC_GTEST_PROP(ShardingTest, BatchesOfAnEpochDifferByASampleAtMost, ()) {
  const Sharding sharding = any_sharding();
  std::set<std::size_t> sizes;
  for (Iteration t = 0; t < sharding.steps_per_epoch(); ++t) {
    sizes.insert(sharding.batch_of(0, t).size());
  }
  RC_ASSERT(*sizes.rbegin() - *sizes.begin() <= 1U);
  RC_ASSERT(2 * static_cast<std::int64_t>(*sizes.begin()) >= sharding.batch);
  const std::int64_t share = sharding.samples / static_cast<std::int64_t>(sharding.workers);
  RC_ASSERT((sharding.steps_per_epoch() - 1) * sharding.batch < share);
  RC_ASSERT(sharding.steps_per_epoch() * sharding.batch >= share);
}

RC_GTEST_PROP(ShardingTest, AnEpochDealsEverySampleOnceButForFewerThanWorkers, ()) {
  const Sharding sharding = any_bucketed();
  const auto indices = epoch_of(sharding, *rc::gen::inRange(0, 5));
  const std::set<std::int64_t> distinct(indices.begin(), indices.end());
  RC_ASSERT(distinct.size() == indices.size());
  RC_ASSERT(*distinct.begin() >= 0);
  RC_ASSERT(*distinct.rbegin() < sharding.samples);
  const auto dealt = static_cast<std::int64_t>(distinct.size());
  RC_ASSERT(sharding.samples - dealt < static_cast<std::int64_t>(sharding.workers));
  RC_ASSERT(sharding.samples_per_epoch() == dealt);
}

// A sample left out of one epoch comes in another.
RC_GTEST_PROP(ShardingTest, NoSampleIsLeftOutForEver, ()) {
  const Sharding sharding = any_bucketed();
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto indices = epoch_of(sharding, epoch);
    seen.insert(indices.begin(), indices.end());
    if (static_cast<std::int64_t>(seen.size()) == sharding.samples) {
      return;
    }
  }
  RC_FAIL("some never come");
}

// A bucket that divides evenly among the workers is never mixed with another.
RC_GTEST_PROP(ShardingTest, ABatchKeepsToItsBucket, ()) {
  Sharding sharding = any_bucketed();
  const auto workers = static_cast<std::int64_t>(sharding.workers);
  for (std::int64_t& end : sharding.bucket_ends) {
    end = std::min(end, sharding.samples - workers) / workers * workers;
  }
  sharding.bucket_ends.back() = sharding.samples;
  const auto iteration = *rc::gen::inRange<Iteration>(0, 100);
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    std::set<std::ptrdiff_t> buckets;
    for (const std::int64_t index : sharding.batch_of(rank, iteration)) {
      buckets.insert(std::ranges::upper_bound(sharding.bucket_ends, index) -
                     sharding.bucket_ends.begin());
    }
    RC_ASSERT(buckets.size() == 1U);
  }
}

// If everything divides evenly, the joined batch does not depend on the number of workers.
RC_GTEST_PROP(ShardingTest, WorkersSplitTheJoinedBatchInRankOrder, ()) {
  Sharding sharding = any_sharding();
  const std::int64_t joined_batch = sharding.batch * static_cast<std::int64_t>(sharding.workers);
  sharding.samples -= sharding.samples % joined_batch;
  Sharding alone = sharding;
  alone.batch = joined_batch;
  alone.workers = 1;
  const auto iteration = *rc::gen::inRange<Iteration>(0, 100);
  std::vector<std::int64_t> joined;
  for (std::size_t rank = 0; rank < sharding.workers; ++rank) {
    const auto batch = sharding.batch_of(rank, iteration);
    joined.insert(joined.end(), batch.begin(), batch.end());
  }
  RC_ASSERT(joined == alone.batch_of(0, iteration));
}

RC_GTEST_PROP(ShardingTest, ChancesChangeWithTheEpochAndTheSeed, ()) {
  const Sharding sharding = any_sharding();
  Sharding reseeded = sharding;
  ++reseeded.seed;
  const std::int64_t steps = sharding.steps_per_epoch();
  RC_ASSERT(sharding.augmentation_seed_of(0) == sharding.augmentation_seed_of(steps - 1));
  RC_ASSERT(sharding.augmentation_seed_of(0) != sharding.augmentation_seed_of(steps));
  RC_ASSERT(sharding.augmentation_seed_of(0) != reseeded.augmentation_seed_of(0));
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
