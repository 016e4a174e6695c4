#include "nodes/ad_psgd_worker.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "nodes/worker.h"
#include "support/effect_log.h"
#include "support/shuffled.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

using testing::EffectLog;

// Four workers with one layer of 10 parameters.
struct SwappingWorker {
  template <class Algorithm>
  explicit SwappingWorker(std::size_t rank, std::type_identity<Algorithm> /*of*/) : self(rank) {
    job.layers = lay_out({"only"}, {10});
    job.topology = Topology(4, 1, 0);
    job.strategy = find_preset("ad-psgd")->strategy;
    job.strategy.order = Order::kFifo;
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    worker = std::make_unique<Worker>(job, chunks, self, make_algorithm<Algorithm>);
  }

  void report_gradient(Iteration of) { worker->handle(GradientReady{self, LayerId(0), of}, world); }
  // Ends the last work that was started.
  void finish(Payload output = Payload(40)) {
    worker->handle(Finished{world.started.back(), std::move(output)}, world);
  }
  void receive(MessageKind kind, std::size_t from, Iteration iteration, Payload payload) {
    Message message;
    message.kind = kind;
    message.from = NodeId(from);
    message.to = self;
    message.iteration = iteration;
    message.payload_bytes = payload.size();
    worker->handle(Received{message, std::move(payload)}, world);
  }
  WorkKind last_work() const { return world.started.back().kind; }

  NodeId self;
  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::unique_ptr<Worker> worker;
  EffectLog world;
};

Payload some_values() { return Payload::owning(std::vector<float>(10)); }

TEST(ActiveWorker, IsAtMostOneIterationPastItsSwap) {
  SwappingWorker active(2, std::type_identity<ActiveWorker>());
  active.report_gradient(0);
  EXPECT_EQ(active.last_work(), WorkKind::kUpdate);
  EXPECT_TRUE(active.world.sent.empty()) << "it sends what it has learned";
  active.finish();
  ASSERT_EQ(active.world.sent.size(), 1U);
  EXPECT_EQ(active.world.sent[0].message.kind, MessageKind::kSwap);
  EXPECT_EQ(active.world.sent[0].message.to.index() % 2, 1U);
  EXPECT_EQ(active.world.released.size(), 1U) << "it computes while the swap is under way";
  active.report_gradient(1);
  active.finish();
  EXPECT_EQ(active.world.released.size(), 1U) << "it waits for the answer";
  const Payload mean = some_values();
  active.receive(MessageKind::kSwapped, 1, 1, mean);
  ASSERT_EQ(active.last_work(), WorkKind::kSwapped);
  EXPECT_EQ(active.world.started.back().sources[0].bytes().data(), mean.bytes().data());
  EXPECT_EQ(active.world.sent.size(), 1U);
  active.finish();
  EXPECT_EQ(active.world.sent.size(), 2U) << "one swap per iteration";
  EXPECT_EQ(active.world.released.back(), (EffectLog::Release{LayerId(0), 2}));
}

TEST(ActiveWorker, AnAnswerThatComesEarlyWaitsForTheStep) {
  SwappingWorker active(2, std::type_identity<ActiveWorker>());
  active.report_gradient(0);
  active.finish();
  active.receive(MessageKind::kSwapped, 1, 1, some_values());
  EXPECT_EQ(active.world.started.size(), 1U) << "its worker computes with the parameters";
  active.report_gradient(1);
  EXPECT_EQ(active.last_work(), WorkKind::kUpdate);
  active.finish();
  EXPECT_EQ(active.last_work(), WorkKind::kSwapped);
  active.finish();
  EXPECT_EQ(active.world.released.size(), 2U);
  EXPECT_EQ(active.world.sent.size(), 2U);
}

TEST(ActiveWorker, AfterItsEndItMovesByItsLastAnswerAsSoonAsThatIsIn) {
  for (const bool early : {false, true}) {
    SwappingWorker active(2, std::type_identity<ActiveWorker>());
    active.report_gradient(0);
    active.finish();
    const Ended ended{active.self, 1};
    if (!early) {
      active.worker->handle(ended, active.world);
    }
    active.receive(MessageKind::kSwapped, 1, 1, some_values());
    EXPECT_EQ(active.last_work(), early ? WorkKind::kUpdate : WorkKind::kSwapped);
    if (early) {
      active.worker->handle(ended, active.world);
    }
    ASSERT_EQ(active.last_work(), WorkKind::kSwapped);
    active.finish();
    EXPECT_EQ(active.world.sent.size(), 1U) << "the swap of its last step was the last";
    EXPECT_EQ(active.world.released.size(), 1U);
    active.worker->handle(Started{active.self, 1}, active.world);
    active.report_gradient(1);
    active.finish();
    EXPECT_EQ(active.world.sent.size(), 2U) << "it goes on as before";
  }
}

TEST(ActiveWorker, DoesNotWaitForALostPartner) {
  SwappingWorker active(2, std::type_identity<ActiveWorker>());
  active.report_gradient(0);
  active.finish();
  const std::size_t partner = active.world.sent[0].message.to.index();
  active.report_gradient(1);
  active.finish();
  EXPECT_EQ(active.world.released.size(), 1U) << "it waits for the answer";
  active.worker->handle(PeerLost{HostId(4 - partner)}, active.world);
  EXPECT_EQ(active.world.released.size(), 1U) << "that was the other passive worker";
  active.worker->handle(PeerLost{HostId(partner)}, active.world);
  EXPECT_EQ(active.world.released.back(), (EffectLog::Release{LayerId(0), 2}));
  EXPECT_EQ(active.world.sent.size(), 1U) << "there is nobody left to ask";
}

TEST(ActiveWorker, AnAnswerOfALostPartnerCounts) {
  SwappingWorker active(2, std::type_identity<ActiveWorker>());
  active.report_gradient(0);
  active.finish();
  const std::size_t partner = active.world.sent[0].message.to.index();
  active.receive(MessageKind::kSwapped, partner, 1, some_values());
  active.worker->handle(PeerLost{HostId(partner)}, active.world);
  active.report_gradient(1);
  active.finish();
  EXPECT_EQ(active.last_work(), WorkKind::kSwapped);
  active.finish();
  ASSERT_EQ(active.world.sent.size(), 2U);
  EXPECT_EQ(active.world.sent[1].message.to, NodeId(4 - partner));
}

TEST(PassiveWorker, DoesNotAnswerALostPartner) {
  SwappingWorker passive(1, std::type_identity<PassiveWorker>());
  passive.receive(MessageKind::kSwap, 0, 1, some_values());
  passive.receive(MessageKind::kSwap, 2, 1, some_values());
  passive.worker->handle(PeerLost{HostId(2)}, passive.world);
  passive.finish(some_values());
  EXPECT_EQ(passive.world.started.size(), 1U);
}

TEST(ActiveWorker, RefusesAnAnswerThatItHasNotAskedFor) {
  SwappingWorker active(2, std::type_identity<ActiveWorker>());
  EXPECT_THROW(active.receive(MessageKind::kSwapped, 1, 1, some_values()), BadMessage);
}

TEST(PassiveWorker, AnswersAtOnceAndFromTheAnswerBefore) {
  SwappingWorker passive(1, std::type_identity<PassiveWorker>());
  passive.receive(MessageKind::kSwap, 0, 1, some_values());
  passive.receive(MessageKind::kSwap, 2, 1, some_values());
  ASSERT_EQ(passive.world.started.size(), 1U) << "the second waits for the result of the first";
  EXPECT_EQ(passive.last_work(), WorkKind::kSwap);
  EXPECT_EQ(passive.world.borrowed.size(), 1U) << "the first is with its own parameters";
  const Payload mean = some_values();
  passive.finish(mean);
  ASSERT_EQ(passive.world.sent.size(), 1U);
  EXPECT_EQ(passive.world.sent[0].message.kind, MessageKind::kSwapped);
  EXPECT_EQ(passive.world.sent[0].message.to, NodeId(0));
  ASSERT_EQ(passive.world.started.size(), 2U);
  EXPECT_EQ(passive.world.started[1].sources[1].bytes().data(), mean.bytes().data());
  passive.finish(some_values());
  EXPECT_EQ(passive.world.sent[1].message.to, NodeId(2));
}

TEST(PassiveWorker, TakesTheMeanOverBeforeItsOwnStep) {
  SwappingWorker passive(1, std::type_identity<PassiveWorker>());
  passive.receive(MessageKind::kSwap, 0, 1, some_values());
  passive.report_gradient(0);
  ASSERT_EQ(passive.world.started.size(), 1U) << "an answer is being made";
  const Payload mean = some_values();
  passive.finish(mean);
  ASSERT_EQ(passive.last_work(), WorkKind::kBlend);
  EXPECT_EQ(passive.world.started.back().keep, 0);
  EXPECT_EQ(passive.world.started.back().sources[0].bytes().data(), mean.bytes().data());
  passive.receive(MessageKind::kSwap, 2, 1, some_values());
  passive.finish();
  EXPECT_EQ(passive.last_work(), WorkKind::kUpdate);
  EXPECT_TRUE(passive.world.released.empty());
  passive.finish();
  EXPECT_EQ(passive.world.released.size(), 1U);
  EXPECT_EQ(passive.last_work(), WorkKind::kSwap) << "and answers who has asked meanwhile";
}

TEST(PassiveWorker, AfterItsEndItTakesTheMeanOverWhenItHasAnswered) {
  SwappingWorker passive(1, std::type_identity<PassiveWorker>());
  passive.receive(MessageKind::kSwap, 0, 1, some_values());
  passive.finish(some_values());
  ASSERT_EQ(passive.world.started.size(), 1U) << "its worker computes with the parameters";
  passive.worker->handle(Ended{passive.self, 0}, passive.world);
  EXPECT_EQ(passive.last_work(), WorkKind::kBlend);
  passive.receive(MessageKind::kSwap, 2, 1, some_values());
  EXPECT_EQ(passive.last_work(), WorkKind::kBlend);
  passive.finish();
  ASSERT_EQ(passive.last_work(), WorkKind::kSwap) << "others may not have ended";
  const Payload mean = some_values();
  passive.finish(mean);
  EXPECT_EQ(passive.world.sent.size(), 2U);
  ASSERT_EQ(passive.last_work(), WorkKind::kBlend);
  EXPECT_EQ(passive.world.started.back().sources[0].bytes().data(), mean.bytes().data());
  passive.worker->handle(Started{passive.self, 0}, passive.world);
  passive.finish();
  passive.receive(MessageKind::kSwap, 0, 2, some_values());
  passive.finish(some_values());
  EXPECT_EQ(passive.last_work(), WorkKind::kSwap) << "its worker computes again";
}

// ---- in any order of events ---------------------------------------------------------------------

// All workers of a run without learning: worker w begins with all parameters at w.
struct Swaps {
  Swaps(std::size_t workers, std::uint64_t seed) {
    job.topology = Topology(workers, 1, 0);
    job.strategy = find_preset("ad-psgd")->strategy;
    job.strategy.seed = seed;
    learners = testing::toy_learners(testing::kLayers, workers);
    job.layers = learners.front()->layers();
    chunks = std::make_shared<const ChunkMap>(make_chunks(job.layers, 1, job.strategy));
    for (std::size_t w = 0; w < workers; ++w) {
      std::ranges::fill(learners[w]->parameters(), static_cast<float>(w));
      nodes.push_back(std::make_unique<Worker>(
          job, chunks, NodeId(w),
          w % 2 == 0 ? make_algorithm<ActiveWorker> : make_algorithm<PassiveWorker>));
      protocols.push_back(nodes.back().get());
    }
  }

  // Of one parameter, over all workers.
  double sum(std::size_t index) const {
    double sum = 0;
    for (const auto& learner : learners) {
      sum += static_cast<double>(learner->parameters()[index]);
    }
    return sum;
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::vector<std::unique_ptr<Learner>> learners;
  std::vector<std::unique_ptr<Worker>> nodes;
  std::vector<Protocol*> protocols;
};

// With no learning, all values have so few binary digits that no float is rounded: the sum stays to
// the last bit. The workers rest in between and go on.
RC_GTEST_PROP(AdPsgd, EverySwapHasItsEffectOnBothSides, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 7);
  Swaps swaps(workers, testing::any_seed());
  const UpdateRule still{.rate = {.base = 0}, .momentum = 0, .weight_decay = 0};
  const VirtualNumbers numbers{.learners = swaps.learners,
                               .chunks = swaps.chunks.get(),
                               .rule = still,
                               .strategy = swaps.job.strategy};
  testing::ShuffledWorld world(swaps.job, swaps.protocols, numbers, testing::kIterations / 2,
                               testing::any_seed());
  world.has_egress = false;
  const auto last = static_cast<float>(workers - 1);
  world.watch = [&](const testing::ShuffledWorld& /*now*/) {
    for (const auto& learner : swaps.learners) {
      for (const float value : learner->parameters()) {
        RC_ASSERT(value >= 0 && value <= last);  // none overshoots
      }
    }
  };
  const auto check_ends = [&](Iteration iterations) {
    for (std::size_t i = 0; i < swaps.learners.front()->parameters().size(); ++i) {
      RC_ASSERT(swaps.sum(i) == static_cast<double>(workers * (workers - 1)) / 2);
    }
    const std::size_t actives = workers > 1 ? (workers + 1) / 2 : 0;
    const auto expected = static_cast<std::int64_t>(actives * swaps.chunks->size()) * iterations;
    RC_ASSERT(world.messages(MessageKind::kSwap) == expected);
    RC_ASSERT(world.messages(MessageKind::kSwapped) == expected);
  };
  RC_ASSERT(world.run());
  check_ends(testing::kIterations / 2);
  RC_ASSERT(world.run_on(testing::kIterations));
  check_ends(testing::kIterations);
}

}  // namespace
}  // namespace sluice
