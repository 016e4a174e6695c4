#include "nodes/elastic_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

// Two layers of a chunk each on one server, which is node 4.
struct OneCentre {
  explicit OneCentre(double elasticity = 0) {
    job.layers = lay_out({"a", "b"}, {10, 6});
    job.topology = Topology(4, 1, 1);
    job.strategy.algorithm = Algorithm::kEasgd;
    job.strategy.partition = Partition::kLayer;
    job.strategy.elasticity = elasticity;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    centre.emplace(job, chunks, NodeId(4));
  }

  static Received visit(std::size_t from, std::size_t chunk, Iteration iteration, Bytes bytes) {
    Message message;
    message.kind = MessageKind::kElastic;
    message.from = NodeId(from);
    message.to = NodeId(4);
    message.chunk = ChunkId(chunk);
    message.iteration = iteration;
    message.payload_bytes = bytes;
    return {message, Payload(bytes)};
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::optional<ElasticServer> centre;
  EffectLog world;
};

TEST(ElasticServer, PullsOnEveryVisit) {
  OneCentre one(0.25);
  one.centre->handle(OneCentre::visit(2, 1, 8, 24), one.world);
  ASSERT_EQ(one.world.started.size(), 1U);
  const Work& work = one.world.started.front();
  EXPECT_EQ(work.kind, WorkKind::kElastic);
  EXPECT_EQ(work.node, NodeId(4));
  EXPECT_EQ(work.origin, NodeId(2));
  EXPECT_EQ(work.chunk, ChunkId(1));
  EXPECT_EQ(work.range, (Range{10, 16}));
  EXPECT_EQ(work.priority, 1U);
  EXPECT_EQ(work.iteration, 8);
  EXPECT_EQ(work.pull, 0.25F);
  ASSERT_EQ(work.sources.size(), 1U);
  EXPECT_EQ(work.sources.front().size(), 24);
  EXPECT_TRUE(one.world.sent.empty()) << "nothing is known before the work is done";
}

TEST(ElasticServer, PullsByAShareOfTheWorkersUnlessTold) {
  OneCentre one;
  one.centre->handle(OneCentre::visit(0, 0, 4, 40), one.world);
  EXPECT_EQ(one.world.started.at(0).pull, static_cast<float>(0.9 / 4));
}

TEST(ElasticServer, AnswersEachVisitorWithWhatItsWorkPutOut) {
  OneCentre one;
  one.centre->handle(OneCentre::visit(3, 0, 4, 40), one.world);
  one.centre->handle(OneCentre::visit(1, 0, 8, 40), one.world);
  ASSERT_EQ(one.world.started.size(), 2U);
  const std::vector<float> output(10, 1.5F);
  const Payload copy = Payload::owning(output);
  one.centre->handle(Finished{one.world.started[1], copy}, one.world);
  one.centre->handle(Finished{one.world.started[0], Payload(40)}, one.world);
  ASSERT_EQ(one.world.sent.size(), 2U);
  const auto& [message, payload] = one.world.sent[0];
  EXPECT_EQ(message.kind, MessageKind::kParameters);
  EXPECT_EQ(message.from, NodeId(4));
  EXPECT_EQ(message.to, NodeId(1));
  EXPECT_EQ(message.chunk, ChunkId(0));
  EXPECT_EQ(message.iteration, 8);
  EXPECT_EQ(message.payload_bytes, 40);
  EXPECT_FALSE(message.wants_return) << "the output is the visitor's own";
  EXPECT_EQ(payload.values().data(), copy.values().data());
  EXPECT_EQ(one.world.sent[1].message.to, NodeId(3));
  EXPECT_EQ(one.world.sent[1].message.iteration, 4);
}

TEST(ElasticServer, UnderstandsNothingElse) {
  OneCentre one;
  Received push = OneCentre::visit(0, 0, 1, 40);
  push.message.kind = MessageKind::kPush;
  EXPECT_THROW(one.centre->handle(push, one.world), InvariantError);
  EXPECT_EQ(one.centre->landing(push.message).buffer, Buffer::kNone);
}

}  // namespace
}  // namespace sluice
