#include "drivers/mpi/sum_sequence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace sluice {
namespace {

Message request(Iteration iteration, std::size_t chunk) {
  Message message;
  message.kind = MessageKind::kAllReduce;
  message.iteration = iteration;
  message.chunk = ChunkId(chunk);
  return message;
}

TEST(SumSequenceTest, ASumWaitsForThoseBeforeIt) {
  SumSequence sums(3, 8);
  sums.add(request(8, 1));
  sums.add(request(9, 2));
  EXPECT_EQ(sums.begin(), std::nullopt);
  sums.add(request(8, 2));
  EXPECT_EQ(sums.begin(), request(8, 2));
  EXPECT_EQ(sums.begin(), request(8, 1));
  sums.end();
  EXPECT_EQ(sums.begin(), std::nullopt);
  sums.add(request(8, 0));
  EXPECT_EQ(sums.begin(), request(8, 0));
  sums.end();
  EXPECT_EQ(sums.begin(), request(9, 2));
  EXPECT_TRUE(sums.empty());
}

TEST(SumSequenceTest, TwoAreInFlightAtATime) {
  SumSequence sums(4, 1);
  for (std::size_t c = 0; c < 4; ++c) {
    sums.add(request(1, c));
  }
  EXPECT_EQ(sums.begin(), request(1, 3));
  EXPECT_EQ(sums.begin(), request(1, 2));
  EXPECT_EQ(sums.begin(), std::nullopt);
  EXPECT_FALSE(sums.empty());
  sums.end();
  EXPECT_EQ(sums.begin(), request(1, 1));
  EXPECT_EQ(sums.begin(), std::nullopt);
}

// Whichever gradient is ready first, and however long sums take.
RC_GTEST_PROP(SumSequenceTest, IsTheSameOnAllProcessesAndFewAreInFlight, ()) {
  const auto chunks = *rc::gen::inRange<std::size_t>(1, 6);
  const auto iterations = *rc::gen::inRange<Iteration>(1, 4);
  std::vector<Message> requests;
  for (Iteration t = 1; t <= iterations; ++t) {
    for (std::size_t c = chunks; c-- > 0;) {
      requests.push_back(request(t, c));
    }
  }
  const std::vector<Message> order = requests;
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  std::shuffle(requests.begin(), requests.end(), random);
  SumSequence sums(chunks, 1);
  std::vector<Message> begun;
  std::size_t ended = 0;
  while (ended < order.size()) {
    if (!requests.empty() && random() % 2 == 0) {
      sums.add(requests.back());
      requests.pop_back();
    } else if (ended < begun.size() && random() % 2 == 0) {
      sums.end();
      ++ended;
    } else if (const auto next = sums.begin()) {
      begun.push_back(*next);
      RC_ASSERT(begun.size() - ended <= 2U);
    }
  }
  RC_ASSERT(begun == order);
  RC_ASSERT(sums.empty());
}

}  // namespace
}  // namespace sluice
