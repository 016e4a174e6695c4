// The runner of one rank, and small groups of runners whose messages the test delivers.
#include "collectives/runner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "support/effect_log.h"

namespace sluice {
namespace {

using testing::EffectLog;

constexpr ChunkId kChunk(0);

Job job_of(std::size_t ranks, std::int64_t params, std::int64_t segment) {
  Job job;
  job.layers = lay_out({"only"}, {params});
  job.topology = Topology(ranks, 1, 0);
  job.strategy.exchange = Exchange::kAllReduce;
  job.strategy.partition = Partition::kLayer;
  job.strategy.segment_params = segment;
  return job;
}

CollectiveRunner runner_of(const Job& job, Collective collective, std::size_t rank) {
  auto chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
  return {job.strategy, std::vector<Collective>(chunks->size(), collective), NodeId(rank),
          AggregationGroups(job), chunks};
}

// What rank 0 receives from rank 1 of two in this round.
Received from_peer(MessageKind kind, std::uint16_t round, Iteration iteration, Bytes bytes) {
  Message message;
  message.kind = kind;
  message.from = NodeId(1);
  message.to = NodeId(0);
  message.chunk = kChunk;
  message.round = round;
  message.iteration = iteration;
  message.payload_bytes = bytes;
  return {message, Payload(bytes)};
}

TEST(CollectiveRunner, OfOneRankIsDoneAtOnce) {
  EffectLog world;
  auto runner = runner_of(job_of(1, 10, 100), Collective::kRing, 0);
  const auto done = runner.begin(kChunk, 3, world);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].chunk, kChunk);
  EXPECT_EQ(done[0].iteration, 3);
  EXPECT_TRUE(world.sent.empty());
}

// Two ranks in a ring: one part goes out to be added, then the sum of the other part.
TEST(CollectiveRunner, IsDoneWhenTheSumIsInPlaceAndNothingIsLent) {
  EffectLog world;
  auto runner = runner_of(job_of(2, 10, 100), Collective::kRing, 0);
  EXPECT_TRUE(runner.begin(kChunk, 1, world).empty());
  ASSERT_EQ(world.sent.size(), 1U);
  EXPECT_EQ(world.sent[0].message.kind, MessageKind::kReduce);
  EXPECT_TRUE(world.sent[0].message.wants_return);
  EXPECT_FALSE(runner.handle(from_peer(MessageKind::kReduce, 0, 1, 20), world));
  ASSERT_EQ(world.started.size(), 1U);
  EXPECT_EQ(world.started[0].kind, WorkKind::kReduce);
  EXPECT_EQ(world.sent.size(), 1U) << "the next round waits for the sum";
  EXPECT_FALSE(runner.handle(Finished{world.started[0], {}}, world));
  ASSERT_EQ(world.sent.size(), 2U);
  EXPECT_EQ(world.sent[1].message.kind, MessageKind::kGather);
  EXPECT_EQ(world.sent[1].message.round, 1);
  EXPECT_FALSE(runner.handle(from_peer(MessageKind::kGather, 1, 1, 20), world));
  EXPECT_FALSE(runner.handle(Returned{world.sent[1].message}, world));
  const auto done = runner.handle(Returned{world.sent[0].message}, world);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->iteration, 1);
}

TEST(CollectiveRunner, KeepsWhatComesAheadOfItsRound) {
  EffectLog world;
  auto runner = runner_of(job_of(2, 10, 100), Collective::kRing, 0);
  EXPECT_FALSE(runner.handle(from_peer(MessageKind::kGather, 1, 1, 20), world));
  EXPECT_FALSE(runner.handle(from_peer(MessageKind::kReduce, 0, 1, 20), world));
  EXPECT_TRUE(world.started.empty()) << "its own gradient is not final yet";
  EXPECT_TRUE(runner.begin(kChunk, 1, world).empty());
  ASSERT_EQ(world.started.size(), 1U);
  EXPECT_FALSE(runner.handle(Finished{world.started[0], {}}, world));
  ASSERT_EQ(world.sent.size(), 2U);
  EXPECT_FALSE(runner.handle(Returned{world.sent[0].message}, world));
  EXPECT_TRUE(runner.handle(Returned{world.sent[1].message}, world));
}

// Otherwise the peer would see the sum change while it reads.
TEST(CollectiveRunner, SendsACopyOfWhatItAddsTo) {
  EffectLog world;
  auto runner = runner_of(job_of(2, 10, 100), Collective::kRecursiveDoubling, 0);
  EXPECT_TRUE(runner.begin(kChunk, 1, world).empty());
  EXPECT_EQ(world.copied.size(), 1U);
  EXPECT_TRUE(world.borrowed.empty());
  EXPECT_FALSE(world.sent.at(0).message.wants_return);
  EXPECT_FALSE(runner.handle(from_peer(MessageKind::kReduce, 0, 1, 40), world));
  EXPECT_TRUE(runner.handle(Finished{world.started.at(0), {}}, world));
}

// The sum has the same bits in any order of arrival.
TEST(CollectiveRunner, AddsInTheOrderOfRanksAsFarAsItHasArrived) {
  EffectLog world;
  auto runner = runner_of(job_of(5, 50, 100), Collective::kDirect, 1);
  EXPECT_TRUE(runner.begin(kChunk, 1, world).empty());
  EXPECT_EQ(world.sent.size(), 4U) << "all messages of a step go at once";
  // In round i, rank 1 receives from the rank i + 1 places before it.
  const auto receive_from = [&](std::uint16_t rank) {
    Received received =
        from_peer(MessageKind::kReduce, static_cast<std::uint16_t>((5 - rank) % 5), 1, 40);
    received.message.from = NodeId(rank);
    received.payload = Payload::owning(std::vector<float>(10, rank));
    EXPECT_FALSE(runner.handle(received, world));
  };
  const auto ranks = [](const Work& work) {
    std::vector<float> first;
    for (const Payload& source : work.sources) {
      first.push_back(source.values().front());
    }
    return first;
  };
  receive_from(4);
  EXPECT_TRUE(world.started.empty()) << "rank 0 comes first";
  receive_from(0);
  ASSERT_EQ(world.started.size(), 1U);
  EXPECT_EQ(ranks(world.started[0]), std::vector<float>{0});
  EXPECT_EQ(world.started[0].before, 1U);
  EXPECT_FALSE(runner.handle(Finished{world.started[0], {}}, world));
  receive_from(3);
  EXPECT_EQ(world.started.size(), 1U) << "rank 2 is missing";
  receive_from(2);
  ASSERT_EQ(world.started.size(), 2U);
  EXPECT_EQ(ranks(world.started[1]), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(world.started[1].before, 0U);
  EXPECT_EQ(world.sent.size(), 4U);
  EXPECT_FALSE(runner.handle(Finished{world.started[1], {}}, world));
  ASSERT_EQ(world.sent.size(), 8U) << "the sum goes to all";
  EXPECT_EQ(world.sent[4].message.to, NodeId(2));
  EXPECT_EQ(world.sent[7].message.to, NodeId(0));
}

TEST(CollectiveRunner, RefusesToBeginAgainBeforeItIsDone) {
  EffectLog world;
  auto runner = runner_of(job_of(2, 10, 100), Collective::kRing, 0);
  runner.begin(kChunk, 1, world);
  EXPECT_THROW(runner.begin(kChunk, 2, world), InvariantError);
}

TEST(CollectiveRunner, GathersWhereTheSumBelongs) {
  const auto runner = runner_of(job_of(2, 10, 100), Collective::kRing, 0);
  const auto reduced = runner.landing(from_peer(MessageKind::kReduce, 0, 1, 20).message);
  EXPECT_EQ(reduced.buffer, Buffer::kNone) << "it is added, not copied";
  const auto gathered = runner.landing(from_peer(MessageKind::kGather, 1, 1, 20).message);
  EXPECT_EQ(gathered.buffer, Buffer::kGradients);
  EXPECT_EQ(gathered.range.size(), 5);
}

// ---- Groups -------------------------------------------------------------------------------------

// Ranks with real numbers; effects are carried out in the order in which they come up.
class Group {
 public:
  Group(const Job& job, Collective collective) {
    for (std::size_t r = 0; r < job.topology.workers(); ++r) {
      ranks_.push_back(std::make_unique<Rank>(job, collective, r));
    }
  }

  void sum() {
    for (auto& rank : ranks_) {
      for (const auto& done : rank->runner.begin(kChunk, 1, *rank)) {
        rank->note(done);
      }
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& rank : ranks_) {
        for (const auto& [message, payload] : std::exchange(rank->outbox, {})) {
          moved = true;
          messages.push_back(message);
          ranks_[message.to.index()]->receive({message, payload});
          if (message.wants_return) {
            rank->tell(Returned{message});
          }
        }
        for (const Work& work : std::exchange(rank->works, {})) {
          moved = true;
          rank->add(work);
        }
      }
    }
  }

  // How often each segment was done.
  const std::map<std::uint32_t, int>& done(std::size_t rank) const { return ranks_[rank]->done; }
  std::size_t segments() const { return ranks_.front()->runner.segments_of(kChunk); }
  const std::vector<float>& values(std::size_t rank) const { return ranks_[rank]->gradient; }

  std::vector<Message> messages;

 private:
  struct Rank final : Effects {
    Rank(const Job& job, Collective collective, std::size_t rank)
        : runner(runner_of(job, collective, rank)) {
      for (std::int64_t i = 0; i < total_params(job.layers); ++i) {
        gradient.push_back(term(rank, i));
      }
    }

    void send(const Message& message, Payload payload) override {
      const auto v = payload.values();
      outbox.emplace_back(message, Payload::owning(std::vector<float>(v.begin(), v.end())));
    }
    void start(Work work) override { works.push_back(std::move(work)); }
    void release(NodeId, LayerId, Iteration) override { FAIL() << "a runner releases nothing"; }
    Payload borrow(NodeId, const BufferRange& what) override { return {view(what.range), nullptr}; }
    Payload copy(NodeId, const BufferRange& what) override { return {view(what.range), nullptr}; }

    std::span<float> view(const Range& range) {
      return std::span(gradient).subspan(static_cast<std::size_t>(range.begin),
                                         static_cast<std::size_t>(range.size()));
    }
    void receive(const Received& received) {
      if (const auto place = runner.landing(received.message); place.buffer != Buffer::kNone) {
        ASSERT_EQ(place.range.size() * kFloatBytes, received.payload.size());
        std::ranges::copy(received.payload.values(), view(place.range).begin());
      }
      tell(received);
    }
    void add(const Work& work) {
      ASSERT_EQ(work.kind, WorkKind::kReduce);
      const auto sum = view(work.range);
      for (const Payload& source : work.sources) {
        ASSERT_EQ(sum.size(), source.values().size());
        std::ranges::transform(sum, source.values(), sum.begin(), std::plus<>());
      }
      tell(Finished{work, {}});
    }
    void tell(const Event& event) { note(runner.handle(event, *this)); }
    void note(const std::optional<CollectiveRunner::Done>& finished) {
      if (finished) {
        ++done[finished->segment];
      }
    }

    CollectiveRunner runner;
    std::vector<float> gradient;
    std::vector<std::pair<Message, Payload>> outbox;
    std::vector<Work> works;
    std::map<std::uint32_t, int> done;
  };

 public:
  static float term(std::size_t rank, std::int64_t i) {
    return static_cast<float>(i * 3 + static_cast<std::int64_t>(rank * rank) + 1);
  }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

RC_GTEST_PROP(CollectiveRunner, EveryRankEndsEachSegmentOnceWithTheSum, ()) {
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 10);
  const auto params = *rc::gen::inRange<std::int64_t>(1, 80);
  const auto segment = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto collective = *rc::gen::elementOf(kPlannedCollectives);
  Group group(job_of(ranks, params, segment), collective);
  group.sum();
  for (std::size_t r = 0; r < ranks; ++r) {
    RC_ASSERT(group.done(r).size() == group.segments());
    RC_ASSERT(std::ranges::all_of(group.done(r), [](const auto& d) { return d.second == 1; }));
    for (std::int64_t i = 0; i < params; ++i) {
      float sum = 0;
      for (std::size_t s = 0; s < ranks; ++s) {
        sum += Group::term(s, i);
      }
      RC_ASSERT(group.values(r)[static_cast<std::size_t>(i)] == sum);
    }
  }
}

// The longest hop of a ring carries a segment, and there are no more segments than that takes.
TEST(CollectiveRunner, CutsLongChunksIntoSegments) {
  for (const auto& [segment, segments] : {std::pair{10, 3}, {25, 2}, {30, 1}}) {
    Group group(job_of(3, 90, segment), Collective::kRing);
    group.sum();
    std::uint32_t last = 0;
    Bytes longest = 0;
    for (const Message& message : group.messages) {
      last = std::max(last, message.segment);
      longest = std::max(longest, message.payload_bytes);
    }
    EXPECT_EQ(last + 1, static_cast<std::uint32_t>(segments)) << segment;
    EXPECT_EQ(longest, 90 / segments / 3 * kFloatBytes) << segment;
    EXPECT_EQ(group.messages.size(), static_cast<std::size_t>(segments) * 3 * 4);
  }
}

}  // namespace
}  // namespace sluice
