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

// A server apart with one chunk of four parameters, and two workers or more.
class OneShard {
 public:
  explicit OneShard(const std::string& preset, Iteration staleness = 1, std::size_t workers = 2,
                    double add_ns_per_byte = 0.1)
      : self_(workers) {
    job_.layers = lay_out({"only"}, {4});
    job_.topology = Topology(workers, 1, 1);
    job_.link.reduce_ns_per_byte = add_ns_per_byte;
    job_.strategy = find_preset(preset)->strategy;
    job_.strategy.staleness = staleness;
    chunks_ = std::make_shared<ChunkMap>(make_chunks(job_.layers, 1, job_.strategy));
    shard_.emplace(job_, chunks_, self_);
  }

  void hear(MessageKind kind, std::size_t worker, Iteration iteration) {
    Message message = message_about(*chunks_, ChunkId(0), kind, NodeId(worker), self_, iteration);
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

  void lose(std::size_t host) { shard_->handle(PeerLost{HostId(host)}, effects); }
  void regain(std::size_t host, Iteration iteration) {
    shard_->handle(PeerJoined{HostId(host), iteration}, effects);
  }

  testing::RecordedEffects effects;

 private:
  NodeId self_;
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
TEST(Shard, TheBoundIsOverTheLiving) {
  OneShard ssp("ssp", 1, 3);
  for (const Iteration iteration : {1, 2}) {
    ssp.push(0, iteration);
    ssp.finish(ssp.effects.started.size() - 1);
  }
  ssp.push(1, 1);
  ssp.finish(2);
  ssp.pull(0, 2);
  EXPECT_TRUE(ssp.effects.sent.empty()) << "rank 2 is too far behind";
  ssp.lose(2);
  ASSERT_EQ(ssp.effects.sent.size(), 1U);
  EXPECT_EQ(ssp.effects.sent[0].to, NodeId(0));
  EXPECT_EQ(ssp.effects.sent[0].slowest, 1);
  ssp.push(1, 2);
  EXPECT_EQ(ssp.effects.started.back().workers, 2U) << "so is the mean";
}

TEST(Shard, NobodyAnswersALostWorker) {
  OneShard ssp("ssp", 1, 3);
  ssp.push(0, 1);
  ssp.pull(0, 1);
  EXPECT_TRUE(ssp.effects.sent.empty()) << "its gradient is not in yet";
  ssp.lose(0);
  ssp.finish(0);
  EXPECT_TRUE(ssp.effects.sent.empty());
}

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

// ---- sums that begin before the last gradient ---------------------------------------------------

constexpr double kPays = 1000;  // an add of the chunk takes 16 us

TEST(Shard, SumsTheFirstRanksWhileOthersAreMissing) {
  OneShard bsp("bsp", 0, 4, kPays);
  bsp.push(2, 1);
  bsp.push(0, 1);
  EXPECT_EQ(bsp.effects.news(), News{}) << "one gradient is no sum";
  bsp.push(1, 1);
  EXPECT_EQ(bsp.effects.news(), News{"start 0"});
  const Work sum = bsp.effects.started[0];
  EXPECT_EQ(sum.kind, WorkKind::kReduce);
  EXPECT_TRUE(sum.fresh);
  EXPECT_EQ(sum.sources.size(), 3U);
  EXPECT_EQ(sum.origin, sum.node) << "no gradient of a worker beside it";
  bsp.push(3, 1);
  EXPECT_EQ(bsp.effects.news(), News{}) << "the sum is still being made";
  bsp.finish(0);
  EXPECT_EQ(bsp.effects.news(), News{"start 0"});
  const Work update = bsp.effects.started[1];
  EXPECT_EQ(update.kind, WorkKind::kUpdate);
  EXPECT_TRUE(update.begun);
  EXPECT_EQ(update.sources.size(), 1U);
  EXPECT_EQ(update.contributors, 4U);
}

TEST(Shard, GoesOnWithWhatHasComeDuringASum) {
  OneShard bsp("bsp", 0, 5, kPays);
  bsp.push(0, 1);
  bsp.push(1, 1);
  bsp.push(2, 1);
  bsp.push(3, 1);
  ASSERT_EQ(bsp.effects.started.size(), 1U);
  bsp.finish(0);
  ASSERT_EQ(bsp.effects.started.size(), 2U);
  EXPECT_EQ(bsp.effects.started[1].kind, WorkKind::kReduce);
  EXPECT_FALSE(bsp.effects.started[1].fresh);
  EXPECT_EQ(bsp.effects.started[1].sources.size(), 2U);
  EXPECT_THROW(bsp.push(1, 1), BadMessage) << "it is in the sum already";
}

// Two adds of 6.4 us pay, one does not.
TEST(Shard, MakesNoSumThatCostsLessThanAUnitOfWork) {
  OneShard bsp("bsp", 0, 4, 400);
  bsp.push(0, 1);
  bsp.push(1, 1);
  EXPECT_EQ(bsp.effects.news(), News{});
  bsp.push(2, 1);
  EXPECT_EQ(bsp.effects.news(), News{"start 0"});
  bsp.finish(0);
  bsp.push(3, 1);
  EXPECT_TRUE(bsp.effects.started[1].begun);
  OneShard sparse("bsp+dgc", 0, 4, kPays);
  sparse.push(0, 1);
  sparse.push(1, 1);
  EXPECT_EQ(sparse.effects.news(), News{}) << "sparse gradients are merged at once";
}

// A sum does not touch the parameters.
TEST(Shard, AnswersPullsDuringASum) {
  OneShard kvstore("kvstore", 0, 3, kPays);
  for (std::size_t w = 0; w < 3; ++w) {
    kvstore.push(w, 1);
  }
  kvstore.finish(0);
  kvstore.finish(1);
  kvstore.push(0, 2);
  kvstore.push(1, 2);
  kvstore.effects.news();
  kvstore.pull(2, 1);
  EXPECT_EQ(kvstore.effects.news(), (News{"borrow", "send to 2"}));
}

TEST(Shard, AWorkerThatIsBackCountsFromWhereItBegins) {
  OneShard ssp("ssp", 1, 3);
  ssp.lose(2);
  for (Iteration t = 1; t <= 4; ++t) {
    for (const std::size_t worker : {0, 1}) {
      ssp.push(worker, t);
      ssp.finish(ssp.effects.started.size() - 1);
      ssp.pull(worker, t);
    }
  }
  ssp.regain(2, 4);
  ssp.effects.news();
  ssp.push(0, 5);
  ssp.finish(ssp.effects.started.size() - 1);
  ssp.pull(0, 5);
  EXPECT_EQ(ssp.effects.news(), (News{"start 0", "copy", "send to 0"})) << "one ahead of 1 and 2";
  ssp.push(1, 5);
  ssp.finish(ssp.effects.started.size() - 1);
  ssp.push(0, 6);
  ssp.finish(ssp.effects.started.size() - 1);
  ssp.effects.news();
  ssp.pull(0, 6);
  EXPECT_EQ(ssp.effects.news(), News{}) << "two ahead of 2";
  ssp.push(2, 5);
  ssp.finish(ssp.effects.started.size() - 1);
  EXPECT_EQ(ssp.effects.news(), (News{"start 0", "copy", "send to 0"}));
}

}  // namespace
}  // namespace sluice
