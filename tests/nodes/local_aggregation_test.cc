#include "nodes/local_aggregation.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

// Updates its own replica, and that is all: what a group does around it shows.
class LonelyAlgorithm final : public BasicWorker {
 public:
  using BasicWorker::BasicWorker;

 private:
  void exchange(ChunkId chunk, Iteration iteration, Effects& effects) override {
    update(chunk, iteration, BatchShare{}, effects);
  }
  void on_network(const Event& event, Effects& effects) override {
    if (const auto* finished = std::get_if<Finished>(&event)) {
      complete(finished->work.chunk, finished->work.iteration, effects);
    }
  }
};

// The second machine of two with two workers each, and a layer of two chunks.
struct OneLeader final : Completion {
  explicit OneLeader(Codec codec = Codec::kNone, Algorithm algorithm = Algorithm::kBsp) {
    job.layers = lay_out({"only"}, {20});
    job.topology = Topology(2, 2, 0);
    job.strategy.algorithm = algorithm;
    job.strategy.exchange = Exchange::kAllReduce;
    job.strategy.slice_params = 10;
    job.strategy.local_aggregation = true;
    job.strategy.codec = codec;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    leader.emplace(job, chunks, NodeId(2), *this, make_algorithm<LonelyAlgorithm>);
  }

  void on_complete(ChunkId chunk, Iteration /*iteration*/, Effects& /*effects*/) override {
    completed.push_back(chunk);
  }

  // The follower's gradient comes, and then the leader's own; the sum is made.
  void sum(ChunkId chunk) {
    Message lent;
    lent.kind = MessageKind::kGradient;
    lent.from = NodeId(3);
    lent.to = NodeId(2);
    lent.chunk = chunk;
    lent.iteration = 1;
    leader->on_network(Received{lent, Payload(40)}, world);
    leader->exchange(chunk, 1, world);
    const Work add = world.started.back();
    ASSERT_EQ(add.kind, WorkKind::kReduce);
    leader->on_network(Finished{add, {}}, world);
  }
  std::vector<ChunkId> exchanged() const {
    std::vector<ChunkId> found;
    for (const Work& work : world.started) {
      if (work.kind == WorkKind::kUpdate) {
        found.push_back(work.chunk);
      }
    }
    return found;
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::optional<LocalAggregation> leader;
  EffectLog world;
  std::vector<ChunkId> completed;
};

TEST(LocalAggregation, ExchangesAChunkWhenTheGroupIsSummed) {
  OneLeader one;
  one.leader->exchange(ChunkId(1), 1, one.world);
  EXPECT_TRUE(one.exchanged().empty()) << "the follower's gradient is missing";
  one.sum(ChunkId(0));
  EXPECT_EQ(one.exchanged(), std::vector{ChunkId(0)});
}

TEST(LocalAggregation, SumsALayerBeforeDgcClipsIt) {
  OneLeader one(Codec::kDgc);
  one.sum(ChunkId(1));
  EXPECT_TRUE(one.exchanged().empty());
  one.sum(ChunkId(0));
  EXPECT_EQ(one.exchanged(), (std::vector{ChunkId(0), ChunkId(1)}));
}

TEST(LocalAggregation, PassesTheParametersOnToTheFollowers) {
  for (const Algorithm algorithm : {Algorithm::kBsp, Algorithm::kPipe}) {
    OneLeader one(Codec::kNone, algorithm);
    one.sum(ChunkId(0));
    EXPECT_TRUE(one.completed.empty());
    one.leader->on_network(Finished{one.world.started.back(), {}}, one.world);
    EXPECT_EQ(one.completed, std::vector{ChunkId(0)});
    ASSERT_EQ(one.world.sent.size(), 1U);
    EXPECT_EQ(one.world.sent[0].message.kind, MessageKind::kParameters);
    EXPECT_EQ(one.world.sent[0].message.to, NodeId(3));
    EXPECT_EQ(one.world.sent[0].message.iteration, 1);
    const bool pipelined = algorithm == Algorithm::kPipe;
    EXPECT_EQ(one.world.copied.size(), pipelined ? 1U : 0U) << "the next update may come too soon";
  }
}

// The leader's next gradient will stand where the sum is.
TEST(LocalAggregation, PassesTheSumOnAndWaitsUntilItIsTakenWhereLearnersUpdate) {
  OneLeader one;
  one.job.strategy.learners_update = true;
  one.leader.emplace(one.job, one.chunks, NodeId(2), one, make_algorithm<LonelyAlgorithm>);
  one.sum(ChunkId(1));
  one.world.borrowed.clear();
  one.leader->on_network(Finished{one.world.started.back(), {}}, one.world);
  ASSERT_EQ(one.world.sent.size(), 1U);
  const Message& sum = one.world.sent[0].message;
  EXPECT_EQ(sum.to, NodeId(3));
  EXPECT_TRUE(sum.wants_return);
  ASSERT_EQ(one.world.borrowed.size(), 1U);
  EXPECT_EQ(one.world.borrowed[0].buffer, Buffer::kGradients);
  EXPECT_EQ(one.world.borrowed[0].range, (*one.chunks)[ChunkId(1)].range);
  EXPECT_TRUE(one.completed.empty());
  one.leader->on_network(Returned{sum}, one.world);
  EXPECT_EQ(one.completed, std::vector{ChunkId(1)});
}

}  // namespace
}  // namespace sluice
