#include "nodes/local_sum.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

constexpr ChunkId kChunk(0);

// Rank 3 adds for itself and the others of its machine.
struct OneSum {
  explicit OneSum(std::size_t per_host, Algorithm algorithm = Algorithm::kBsp) {
    job.layers = lay_out({"a", "b"}, {10, 6});
    job.topology = Topology(2, per_host, 0);
    job.strategy.algorithm = algorithm;
    job.strategy.exchange = Exchange::kAllReduce;
    job.strategy.partition = Partition::kLayer;
    job.strategy.local_aggregation = true;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    self = NodeId(per_host);
    sum.emplace(job, chunks, self);
  }

  // The gradient of the worker that stands so many places behind the one that speaks.
  bool lend(std::size_t place, Iteration iteration = 1) {
    Message message;
    message.kind = MessageKind::kGradient;
    message.from = NodeId(self.index() + place);
    message.to = self;
    message.chunk = kChunk;
    message.iteration = iteration;
    return sum->on_lent({message, Payload(Bytes{40} + static_cast<Bytes>(place))}, world);
  }
  bool finish_last() { return sum->on_added({world.started.back(), {}}, world); }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  NodeId self;
  std::optional<LocalSum> sum;
  EffectLog world;
};

TEST(LocalSum, OfOneIsItsOwnGradient) {
  OneSum one(1);
  EXPECT_TRUE(one.sum->on_own(kChunk, 1, one.world));
  EXPECT_TRUE(one.world.started.empty());
}

TEST(LocalSum, AddsInRankOrderOneAfterTheOther) {
  OneSum one(4);
  EXPECT_FALSE(one.lend(3));
  EXPECT_FALSE(one.lend(1));
  EXPECT_TRUE(one.world.started.empty()) << "the own gradient is not final yet";
  EXPECT_FALSE(one.sum->on_own(kChunk, 1, one.world));
  ASSERT_EQ(one.world.started.size(), 1U);
  const Work& first = one.world.started.front();
  EXPECT_EQ(first.kind, WorkKind::kReduce);
  EXPECT_EQ(first.node, one.self);
  EXPECT_EQ(first.origin, NodeId(one.self.index() + 1));
  EXPECT_EQ(first.range, (Range{0, 10}));
  EXPECT_EQ(first.sources.at(0).size(), 41);
  EXPECT_FALSE(one.finish_last());
  EXPECT_EQ(one.world.started.size(), 1U) << "the second is not here, and the third waits for it";
  EXPECT_FALSE(one.lend(2));
  ASSERT_EQ(one.world.started.size(), 2U);
  EXPECT_EQ(one.world.started.back().sources.at(0).size(), 42);
  EXPECT_FALSE(one.finish_last());
  ASSERT_EQ(one.world.started.size(), 3U);
  EXPECT_EQ(one.world.started.back().sources.at(0).size(), 43);
  EXPECT_TRUE(one.finish_last());
}

TEST(LocalSum, StartsOverForTheNextIteration) {
  OneSum one(2);
  for (const Iteration iteration : {1, 2, 3}) {
    EXPECT_FALSE(one.lend(1, iteration));
    EXPECT_EQ(one.world.started.size(), static_cast<std::size_t>(iteration - 1));
    EXPECT_FALSE(one.sum->on_own(kChunk, iteration, one.world));
    ASSERT_EQ(one.world.started.size(), static_cast<std::size_t>(iteration));
    EXPECT_EQ(one.world.started.back().iteration, iteration);
    EXPECT_TRUE(one.finish_last());
  }
}

// In a pipeline a neighbour may lend its next gradient while this one's sum is being made.
TEST(LocalSum, KeepsTheIterationsOfAPipelineApart) {
  OneSum one(2, Algorithm::kPipe);
  one.job.strategy.pipeline_depth = 2;
  EXPECT_FALSE(one.lend(1, 1));
  EXPECT_FALSE(one.lend(1, 2));
  EXPECT_FALSE(one.sum->on_own(kChunk, 2, one.world));
  ASSERT_EQ(one.world.started.size(), 1U);
  EXPECT_EQ(one.world.started.back().iteration, 2);
  EXPECT_EQ(one.world.started.back().slot, 1U);
  EXPECT_TRUE(one.finish_last());
  EXPECT_FALSE(one.sum->on_own(kChunk, 1, one.world));
  EXPECT_EQ(one.world.started.back().iteration, 1);
  EXPECT_EQ(one.world.started.back().slot, 0U);
  EXPECT_TRUE(one.finish_last());
}

}  // namespace
}  // namespace sluice
