#include "nodes/ad_psgd_worker.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
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
          job, chunks, NodeId(w), [&](const auto& of, auto map, NodeId self, Completion& done) {
            return make(of, std::move(map), self, done);
          }));
      protocols.push_back(nodes.back().get());
    }
  }

  std::unique_ptr<WorkerAlgorithm> make(const Job& of, std::shared_ptr<const ChunkMap> map,
                                        NodeId self, Completion& done) {
    if (self.index() % 2 == 0) {
      auto worker = std::make_unique<ActiveWorker>(of, std::move(map), self, done);
      actives.push_back(worker.get());
      return worker;
    }
    auto worker = std::make_unique<PassiveWorker>(of, std::move(map), self, done);
    passives.push_back(worker.get());
    return worker;
  }

  // The first parameter of a chunk, with what the last swaps will change in it.
  double settled(std::size_t rank, ChunkId chunk) const {
    const auto begin = static_cast<std::size_t>((*chunks)[chunk].range.begin);
    const auto own = static_cast<double>(learners[rank]->parameters()[begin]);
    if (rank % 2 == 0) {
      const auto answer = actives[rank / 2]->answer(chunk);
      return answer ? own + answer->mean.values()[0] - answer->sent.values()[0] : own;
    }
    const auto mean = passives[rank / 2]->mean(chunk);
    return mean ? mean->values()[0] : own;
  }

  Job job;
  std::shared_ptr<const ChunkMap> chunks;
  std::vector<std::unique_ptr<Learner>> learners;
  std::vector<std::unique_ptr<Worker>> nodes;
  std::vector<Protocol*> protocols;
  std::vector<const ActiveWorker*> actives;
  std::vector<const PassiveWorker*> passives;
};

RC_GTEST_PROP(AdPsgd, SwapsKeepTheMeanOfAllWorkersAndNeverOvershoot, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 7);
  Swaps swaps(workers, testing::any_seed());
  const UpdateRule still{.rate = {.base = 0}, .momentum = 0, .weight_decay = 0};
  const VirtualNumbers numbers{.learners = swaps.learners,
                               .chunks = swaps.chunks.get(),
                               .rule = still,
                               .strategy = swaps.job.strategy};
  testing::ShuffledWorld world(swaps.job, swaps.protocols, numbers, testing::kIterations,
                               testing::any_seed());
  world.has_egress = false;
  const auto last = static_cast<float>(workers - 1);
  world.watch = [&](const testing::ShuffledWorld& /*now*/) {
    for (const auto& learner : swaps.learners) {
      for (const float value : learner->parameters()) {
        RC_ASSERT(value >= 0 && value <= last);
      }
    }
  };
  RC_ASSERT(world.run());
  for (std::size_t c = 0; c < swaps.chunks->size(); ++c) {
    double sum = 0;
    for (std::size_t w = 0; w < workers; ++w) {
      sum += swaps.settled(w, ChunkId(c));
    }
    const auto n = static_cast<double>(workers);
    RC_ASSERT(std::abs(sum - n * (n - 1) / 2) < 1e-4);
  }
}

}  // namespace
}  // namespace sluice
