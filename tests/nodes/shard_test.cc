#include "nodes/shard.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "nodes/presets.h"
#include "partition/about.h"
#include "support/recorded_effects.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

using News = std::vector<std::string>;

// A server apart with one chunk of four parameters, and two workers, 0 and 1.
class OneShard {
 public:
  explicit OneShard(const std::string& preset, Iteration staleness = 1) {
    job_.layers = lay_out({"only"}, {4});
    job_.topology = Topology(2, 1, 1);
    job_.strategy = find_preset(preset)->strategy;
    job_.strategy.staleness = staleness;
    chunks_ = std::make_shared<ChunkMap>(make_chunks(job_.layers, 1, job_.strategy));
    shard_.emplace(job_, chunks_, NodeId(2));
  }

  void hear(MessageKind kind, std::size_t worker, Iteration iteration) {
    Message message =
        message_about(*chunks_, ChunkId(0), kind, NodeId(worker), NodeId(2), iteration);
    message.payload_bytes = kind == MessageKind::kPush ? 16 : 0;
    shard_->handle(Received{message, Payload(message.payload_bytes)}, effects);
  }
  void push(std::size_t worker, Iteration iteration) {
    hear(MessageKind::kPush, worker, iteration);
  }
  void pull(std::size_t worker, Iteration iteration) {
    hear(MessageKind::kPull, worker, iteration);
  }
  // The work that was started as the index-th is done.
  void finish(std::size_t index) {
    shard_->handle(Finished{effects.started.at(index), Payload(Bytes{8})}, effects);
  }

  testing::RecordedEffects effects;

 private:
  Job job_;
  std::shared_ptr<const ChunkMap> chunks_;
  std::optional<Shard> shard_;
};

TEST(Shard, WaitsForAllAndTellsAll) {
  OneShard bsp("bsp");
  bsp.push(1, 1);
  EXPECT_EQ(bsp.effects.news(), News{});
  bsp.push(0, 1);
  EXPECT_EQ(bsp.effects.news(), News{"start 0"});
  EXPECT_EQ(bsp.effects.started[0].sources.size(), 2U);
  EXPECT_EQ(bsp.effects.started[0].contributors, 2U);
  EXPECT_EQ(bsp.effects.started[0].workers, 2U);
  bsp.finish(0);
  EXPECT_EQ(bsp.effects.news(), (News{"borrow", "send to 0", "borrow", "send to 1"}));
  EXPECT_EQ(bsp.effects.sent[0].kind, MessageKind::kParameters);
  EXPECT_EQ(bsp.effects.sent[0].slowest, 1);
}

TEST(Shard, RefusesAGradientOfAnotherIteration) {
  OneShard bsp("bsp");
  EXPECT_THROW(bsp.push(0, 2), BadMessage);
  EXPECT_THROW(bsp.hear(MessageKind::kNotify, 0, 1), InvariantError);
}

TEST(Shard, AnnouncesAndAnswersWhoAsks) {
  OneShard kvstore("kvstore");
  kvstore.push(0, 1);
  kvstore.pull(0, 1);
  kvstore.push(1, 1);
  EXPECT_EQ(kvstore.effects.news(), News{"start 0"});
  kvstore.finish(0);
  EXPECT_EQ(kvstore.effects.news(), (News{"send to 0", "send to 1", "borrow", "send to 0"}));
  kvstore.pull(1, 1);
  EXPECT_EQ(kvstore.effects.news(), (News{"borrow", "send to 1"}));
}

// The update that comes next may run on another thread, so the answer is copied before.
TEST(Shard, WorksOnAChunkOnceAtATimeAndReadsItInBetween) {
  OneShard asp("asp");
  asp.push(0, 1);
  asp.push(1, 1);
  EXPECT_EQ(asp.effects.news(), News{"start 0"});
  EXPECT_EQ(asp.effects.started[0].contributors, 1U);
  EXPECT_EQ(asp.effects.started[0].workers, 2U);
  asp.finish(0);
  EXPECT_EQ(asp.effects.news(), (News{"copy", "send to 0", "start 0"}));
  EXPECT_EQ(asp.effects.started[1].origin, NodeId(1));
  asp.finish(1);
  EXPECT_EQ(asp.effects.news(), (News{"copy", "send to 1"}));
}

TEST(Shard, APullThatComesDuringAnUpdateWaitsForItsEnd) {
  OneShard ssp("ssp", 1);
  ssp.push(0, 1);
  ssp.finish(0);
  EXPECT_EQ(ssp.effects.news(), News{"start 0"}) << "nobody asked";
  ssp.push(1, 1);
  ssp.pull(0, 1);
  EXPECT_EQ(ssp.effects.news(), News{"start 0"});
  ssp.push(0, 2);
  EXPECT_EQ(ssp.effects.news(), News{});
  ssp.finish(1);
  EXPECT_EQ(ssp.effects.news(), (News{"copy", "send to 0", "start 0"}));
}

TEST(Shard, NobodyGetsFurtherAheadThanTheBound) {
  OneShard ssp("ssp", 1);
  ssp.push(0, 1);
  ssp.finish(0);
  ssp.push(0, 2);
  ssp.finish(1);
  ssp.effects.news();
  ssp.pull(0, 2);
  EXPECT_EQ(ssp.effects.news(), News{}) << "worker 1 has made no step";
  ssp.push(1, 1);
  ssp.finish(2);
  EXPECT_EQ(ssp.effects.news(), (News{"start 0", "copy", "send to 0"}));
  EXPECT_EQ(ssp.effects.sent.back().slowest, 1);
}

// A patch for one worker is work on the chunk too.
TEST(Shard, AnUpdateWaitsUntilASparseAnswerIsMade) {
  OneShard asp("asp+dgc");
  asp.push(0, 1);
  asp.push(1, 1);
  asp.finish(0);
  ASSERT_EQ(asp.effects.started.size(), 2U);
  EXPECT_EQ(asp.effects.started[1].kind, WorkKind::kChanges);
  asp.finish(1);
  EXPECT_EQ(asp.effects.news(), (News{"start 0", "start 0", "send to 0", "start 0"}));
  EXPECT_EQ(asp.effects.started[2].kind, WorkKind::kUpdate);
}

}  // namespace
}  // namespace sluice
