#include "drivers/realtime/load_ahead.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>

#include "base/random.h"
#include "data/synthetic.h"
#include "support/limited_threads.h"

namespace sluice {
namespace {

bool operator==(const Batch& a, const Batch& b) {
  return a.shape == b.shape && a.features == b.features && a.words == b.words &&
         a.labels == b.labels;
}

std::shared_ptr<const Samples> some_samples() {
  return std::make_shared<const DataSet>(
      make_synthetic({.sample_shape = {2, 3}, .classes = 4, .train_samples = 50}).train);
}

// The same bits as without loading ahead, also for several workers at once that are not equally
// fast.
RC_GTEST_PROP(LoadAheadThreadsTest, TheSameBatchesComeOut, ()) {
  const auto samples = some_samples();
  const auto workers = *rc::gen::inRange<std::size_t>(1, 4);
  const Sharding sharding{*rc::gen::arbitrary<std::uint64_t>(), samples->size(),
                          *rc::gen::inRange<std::int64_t>(1, 12), workers};
  AheadLoader loader(*rc::gen::inRange<std::size_t>(0, 4));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < workers; ++rank) {
      threads.emplace_back([&, rank] {
        const BatchSequence sequence = batches_of(samples, sharding, rank);
        const auto ahead = loader.open(sequence);
        const auto direct = DirectLoader().open(sequence);
        for (Iteration t = 0; t < 20; ++t) {
          wrong += ahead->get(t) == direct->get(t) ? 0 : 1;
        }
      });
    }
  }
  RC_ASSERT(wrong == 0);
  RC_ASSERT(loader.tally().batches == static_cast<std::int64_t>(workers) * 20);
}

// A batch that holds nothing but its number.
BatchSequence counted(std::atomic<int>& loads, std::int64_t size) {
  return {[&loads](std::int64_t number, Batch& batch) {
            ++loads;
            batch.labels = {number};
          },
          size};
}

RC_GTEST_PROP(LoadAheadThreadsTest, AnyNumberMayBeAskedFor, ()) {
  std::atomic<int> loads = 0;
  AheadLoader loader(*rc::gen::inRange<std::size_t>(0, 3));
  const auto stream = loader.open(counted(loads, 30));
  for (const auto number :
       *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 30))) {
    RC_ASSERT(stream->get(number).labels == std::vector{number});
  }
}

TEST(LoadAheadThreadsTest, NothingBeyondTheEndIsLoaded) {
  std::atomic<int> loads = 0;
  {
    AheadLoader loader(3);
    const auto stream = loader.open(counted(loads, 5));
    for (std::int64_t i = 0; i < 5; ++i) {
      stream->get(i);
    }
  }
  EXPECT_EQ(loads, 5);
}

// While batch 0 is in use, the next ones are loaded unasked.
TEST(LoadAheadThreadsTest, BatchesAreThereBeforeTheyAreAskedFor) {
  std::atomic<int> loads = 0;
  AheadLoader loader(2);
  const auto stream = loader.open(counted(loads, 100));
  stream->get(0);
  while (loads < 3) {
    std::this_thread::yield();
  }
  stream->get(1);
  while (loads < 4) {
    std::this_thread::yield();
  }
  stream->get(2);
  EXPECT_GE(loader.tally().ahead, 1);
  EXPECT_EQ(loader.tally().batches, 3);
}

TEST(LoadAheadThreadsTest, WithoutThreadsNothingIsAhead) {
  std::atomic<int> loads = 0;
  AheadLoader loader(0);
  const auto stream = loader.open(counted(loads, 100));
  for (std::int64_t i = 0; i < 10; ++i) {
    stream->get(i);
    EXPECT_EQ(loads, i + 1);
  }
  EXPECT_EQ(loader.tally().ahead, 0);
}

TEST(LoadAheadThreadsTest, AnErrorComesWithItsBatch) {
  const BatchSequence sequence{[](std::int64_t number, Batch& batch) {
    if (number == 3) {
      throw DataError("a.png: offset 3");
    }
    batch.labels = {number};
  }};
  for (const std::size_t threads : {0, 1, 3}) {
    AheadLoader loader(threads);
    const auto stream = loader.open(sequence);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(stream->get(i).labels.front(), i);
    }
    EXPECT_THROW(stream->get(3), DataError);
    EXPECT_EQ(stream->get(4).labels.front(), 4);
  }
}

// Streams come and go while others are read, and a loader may end while batches are being loaded.
TEST(LoadAheadThreadsTest, StreamsMayBeLeftAtAnyTime) {
  const auto samples = some_samples();
  for (int i = 0; i < 20; ++i) {
    AheadLoader loader(2);
    const auto kept = loader.open(batches_in_order(samples, 3));
    kept->get(0);
    {
      const auto left = loader.open(batches_in_order(samples, 4));
      left->get(i % 5);
    }
    EXPECT_EQ(kept->get(1).shape.front(), 3);
  }
}

TEST(LoadAheadThreadsTest, AThreadThatCannotBeStartedIsAnError) {
  for (int limit = 0; limit < 3; ++limit) {
    EXPECT_THROW(AheadLoader(3, testing::limited_threads(limit)), std::runtime_error);
  }
}

}  // namespace
}  // namespace sluice
