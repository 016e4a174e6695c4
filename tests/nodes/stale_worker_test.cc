#include "nodes/stale_worker.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "nodes/worker.h"
#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;
using Release = EffectLog::Release;

// One worker of three, with one layer on the one server.
struct OneWorker {
  explicit OneWorker(Iteration staleness, Codec codec = Codec::kNone) {
    job.layers = lay_out({"only"}, {10});
    job.topology = Topology(3, 1, 1);
    job.strategy.algorithm = Algorithm::kSsp;
    job.strategy.exchange = Exchange::kLatePull;
    job.strategy.partition = Partition::kLayer;
    job.strategy.staleness = staleness;
    job.strategy.codec = codec;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    worker.emplace(job, chunks, NodeId(1), make_algorithm<StaleWorker>);
    worker->handle(Started{NodeId(1)}, world);
    world.released.clear();
  }

  // The gradient of this iteration is final; what the worker does about it is new in the log.
  void compute(Iteration iteration) {
    world = {};
    worker->handle(GradientReady{NodeId(1), LayerId(0), iteration}, world);
    worker->handle(BackwardDone{NodeId(1), iteration}, world);
  }
  void finish() {
    const Work work = world.started.back();
    worker->handle(Finished{work, Payload(work.output_bytes)}, world);
  }
  void give_back(Iteration iteration) {
    Message push;
    push.kind = MessageKind::kPush;
    push.from = NodeId(1);
    push.iteration = iteration;
    worker->handle(Returned{push}, world);
  }
  void answer(Iteration iteration, Iteration slowest) {
    Message parameters;
    parameters.kind = MessageKind::kParameters;
    parameters.to = NodeId(1);
    parameters.iteration = iteration;
    parameters.slowest = slowest;
    EXPECT_EQ(worker->landing(parameters).buffer, Buffer::kParameters);
    worker->handle(Received{parameters, Payload(40)}, world);
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::optional<Worker> worker;
  EffectLog world;
};

TEST(StaleWorker, PushesAndStepsByItselfInsideTheBound) {
  OneWorker one(2);
  one.compute(0);
  ASSERT_EQ(one.world.sent.size(), 1U);
  const Message& push = one.world.sent[0].message;
  EXPECT_EQ(push.kind, MessageKind::kPush);
  EXPECT_EQ(push.to, NodeId(3));
  EXPECT_EQ(push.iteration, 1);
  EXPECT_EQ(push.payload_bytes, 40);
  EXPECT_TRUE(push.wants_return) << "the next but one backward pass writes to the same slot";
  ASSERT_EQ(one.world.started.size(), 1U);
  EXPECT_EQ(one.world.started[0].kind, WorkKind::kUpdate);
  EXPECT_EQ(one.world.started[0].contributors, 1U);
  EXPECT_EQ(one.world.started[0].workers, 3U);
  EXPECT_TRUE(one.world.released.empty());
  one.finish();
  EXPECT_EQ(one.world.released, std::vector{(Release{LayerId(0), 1})});
}

TEST(StaleWorker, AsksAtTheBoundAndNotBefore) {
  OneWorker one(2);
  for (const Iteration iteration : {0, 1, 2}) {
    one.compute(iteration);
    one.give_back(iteration + 1);
    const bool beyond = iteration + 1 > 2;
    ASSERT_EQ(one.world.sent.size(), beyond ? 2U : 1U) << iteration;
    ASSERT_EQ(one.world.started.size(), beyond ? 0U : 1U) << iteration;
    if (!beyond) {
      one.finish();
    }
  }
  EXPECT_EQ(one.world.sent[1].message.kind, MessageKind::kPull);
  EXPECT_EQ(one.world.sent[1].message.iteration, 3);
  EXPECT_TRUE(one.world.released.empty());
  one.answer(3, 2);
  EXPECT_EQ(one.world.released, std::vector{(Release{LayerId(0), 3})});
  // The slowest has made two updates: the worker may go on by itself up to the fourth.
  one.compute(3);
  EXPECT_EQ(one.world.started.size(), 1U);
  one.finish();
  one.give_back(4);
  one.compute(4);
  EXPECT_TRUE(one.world.started.empty());
  EXPECT_EQ(one.world.sent.size(), 2U);
}

TEST(StaleWorker, WithoutStalenessAsksAlways) {
  OneWorker one(0);
  for (const Iteration iteration : {0, 1, 2}) {
    one.compute(iteration);
    EXPECT_TRUE(one.world.started.empty());
    ASSERT_EQ(one.world.sent.size(), 2U);
    one.answer(iteration + 1, iteration + 1);
    EXPECT_TRUE(one.world.released.empty()) << "its only slot is still lent";
    one.give_back(iteration + 1);
    EXPECT_EQ(one.world.released, std::vector{(Release{LayerId(0), iteration + 1})});
  }
}

TEST(StaleWorker, WaitsForASlotThatIsNotLent) {
  OneWorker one(9);
  one.compute(0);
  one.finish();
  EXPECT_EQ(one.world.released.size(), 1U) << "the other slot is free";
  one.compute(1);
  one.finish();
  EXPECT_TRUE(one.world.released.empty()) << "both are lent";
  one.give_back(1);
  EXPECT_EQ(one.world.released, std::vector{(Release{LayerId(0), 2})});
}

TEST(StaleWorker, TellsWhichOfItsSlotsHasComeBack) {
  OneWorker one(9);
  one.compute(0);
  one.finish();
  one.compute(1);
  one.finish();
  one.give_back(2);
  EXPECT_TRUE(one.world.released.empty()) << "the next gradient goes where the first one is";
  one.give_back(1);
  EXPECT_EQ(one.world.released, std::vector{(Release{LayerId(0), 2})});
}

TEST(StaleWorker, WritesToItsSlotsInTurn) {
  OneWorker one(9);
  for (const Iteration iteration : {0, 1, 2}) {
    one.compute(iteration);
    ASSERT_FALSE(one.world.borrowed.empty());
    EXPECT_EQ(one.world.borrowed[0].slot, static_cast<std::size_t>(iteration % 2));
    one.give_back(iteration + 1);
    one.finish();
  }
}

TEST(StaleWorker, SendsAndAppliesThePackedGradient) {
  OneWorker one(9, Codec::kDgc);
  one.compute(0);
  EXPECT_TRUE(one.world.sent.empty());
  ASSERT_EQ(one.world.started.size(), 1U);
  EXPECT_EQ(one.world.started[0].kind, WorkKind::kEncode);
  one.finish();
  ASSERT_EQ(one.world.sent.size(), 1U);
  EXPECT_FALSE(one.world.sent[0].message.wants_return) << "it is a copy";
  ASSERT_EQ(one.world.started.size(), 2U);
  EXPECT_EQ(one.world.started[1].kind, WorkKind::kUpdate);
  EXPECT_TRUE(one.world.started[1].coded);
  EXPECT_EQ(one.world.started[1].sources.at(0).size(), one.world.sent[0].payload.size());
  one.finish();
  EXPECT_EQ(one.world.released.size(), 1U);
}

}  // namespace
}  // namespace sluice
