// Outer steps in pairs (NoLoCo), against a reference in double precision, under any order of
// delivery.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "nodes/assembly.h"
#include "nodes/random_pairs.h"
#include "nodes/shuffled_runs.h"
#include "nodes/validate.h"
#include "partition/about.h"
#include "partition/fragments.h"
#include "support/recorded_effects.h"
#include "support/shuffled.h"

namespace sluice {
namespace {

using testing::any_seed;
using testing::kLayers;
using testing::ShuffledWorld;
using testing::toy_learners;
using testing::ToyLearner;

constexpr Iteration kPairsLength = 15;
constexpr double kInnerRate = 0.05;

RC_GTEST_PROP(RandomPairs, EachWorkerHasThePartnerThatHasIt, ()) {
  const Topology topology(*rc::gen::inRange<std::size_t>(1, 20), 1, 0);
  const std::uint64_t seed = any_seed();
  const auto iteration = *rc::gen::inRange<Iteration>(1, 1000);
  std::size_t alone = 0;
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    const auto partner = partner_of(topology, seed, NodeId(w), iteration);
    if (!partner) {
      ++alone;
      continue;
    }
    RC_ASSERT(*partner != NodeId(w));
    RC_ASSERT(partner_of(topology, seed, *partner, iteration) == NodeId(w));
  }
  RC_ASSERT(alone == topology.workers() % 2);
}

TEST(RandomPairs, EachMeetsAllOthers) {
  const Topology topology(6, 1, 0);
  std::set<std::size_t> met;
  for (Iteration t = 1; t <= 60; ++t) {
    met.insert(partner_of(topology, 7, NodeId(2), t)->index());
  }
  EXPECT_EQ(met, (std::set<std::size_t>{0, 1, 3, 4, 5}));
}

Job pairs_job(const Cadence& cadence, std::size_t workers) {
  Job job = testing::local_job(cadence, workers);
  job.strategy.exchange = Exchange::kGossip;
  return job;
}

Cadence any_cadence_of_pairs() {
  Cadence cadence;
  cadence.every = *rc::gen::inRange<Iteration>(1, 6);
  cadence.outer = *rc::gen::element(Outer::kMean, Outer::kNesterov);
  cadence.rate = *rc::gen::element(0.7, 1.0);
  cadence.momentum = cadence.outer == Outer::kNesterov ? 0.5 : Cadence{}.momentum;
  cadence.pull = *rc::gen::element(0.0, 0.7);
  cadence.fragments = *rc::gen::inRange<std::int64_t>(1, std::min<Iteration>(cadence.every, 3) + 1);
  cadence.delay = *rc::gen::inRange<Iteration>(0, cadence.every);
  cadence.mix = *rc::gen::element(0.0, 0.0, 0.5);
  return cadence;
}

struct PairsRun {
  PairsRun(const Job& job, std::uint64_t seed, Iteration length = kPairsLength,
           float rate = kInnerRate)
      : assembly(assemble(job)),
        learners(toy_learners(kLayers, job.topology.workers())),
        numbers{.learners = learners,
                .chunks = assembly.chunks.get(),
                .rule = {.rate = {.base = rate}, .momentum = 0, .weight_decay = 0},
                .strategy = job.strategy},
        world(assembly.job, assembly.protocols, numbers, length, seed) {}

  std::vector<float> parameters(std::size_t rank) {
    const auto values = learners[rank]->parameters();
    return {values.begin(), values.end()};
  }

  Assembly assembly;
  std::vector<std::unique_ptr<Learner>> learners;
  VirtualNumbers numbers;
  ShuffledWorld world;
};

// One value on all workers, by the formula of the paper, with slow weights phi, fast weights theta
// and the way of the fast ones.
class PairReference {
 public:
  PairReference(double initial, std::size_t index, std::int64_t fragment, const Job& job)
      : index_(index), fragment_(fragment), job_(job) {
    own_.assign(job.topology.workers(), {.theta = initial, .phi = initial});
  }

  double own(std::size_t rank) const { return own_[rank].theta; }

  void step(Iteration t) {
    const Cadence& cadence = job_.strategy.cadence;
    for (std::size_t rank = 0; rank < own_.size(); ++rank) {
      const auto seen = static_cast<float>(own_[rank].theta);
      own_[rank].theta -=
          kInnerRate * static_cast<double>(ToyLearner::gradient(seen, index_, rank, t - 1));
    }
    const Iteration turn = (fragment_ + 1) * cadence.every / cadence.fragments;
    if (t % cadence.every == turn % cadence.every) {
      begun_ = t;
      for (Worker& worker : own_) {
        worker.way = worker.theta - worker.phi;
      }
    }
    if (begun_ > 0 && t == begun_ + cadence.delay) {
      outer();
    }
  }

 private:
  struct Worker {
    double theta = 0;
    double phi = 0;
    double way = 0;
    double delta = 0;
  };

  void outer() {
    const Cadence& cadence = job_.strategy.cadence;
    const double momentum = cadence.outer == Outer::kNesterov ? cadence.momentum : 0;
    const std::vector<Worker> before = own_;
    for (std::size_t rank = 0; rank < own_.size(); ++rank) {
      const auto partner = partner_of(job_.topology, job_.strategy.seed, NodeId(rank), begun_);
      const Worker& other = before[partner ? partner->index() : rank];
      Worker& worker = own_[rank];
      const double mean_way = (before[rank].way + other.way) / 2;
      const double mean_phi = (before[rank].phi + other.phi) / 2;
      worker.delta = momentum * worker.delta + cadence.rate * mean_way -
                     cadence.pull * (before[rank].phi - mean_phi);
      worker.phi += worker.delta;
      worker.theta = cadence.mix * worker.theta + (1 - cadence.mix) * worker.phi;
    }
  }

  std::size_t index_;
  std::int64_t fragment_;
  const Job& job_;
  std::vector<Worker> own_;
  Iteration begun_ = 0;
};

RC_GTEST_PROP(OuterPairs, AreThoseOfTheReference, ()) {
  Job job = pairs_job(any_cadence_of_pairs(), *rc::gen::inRange<std::size_t>(1, 7));
  job.strategy.partition = *rc::gen::element(Partition::kLayer, Partition::kSlice);
  job.strategy.order = *rc::gen::element(Order::kFifo, Order::kPriority, Order::kAfterBackward);
  job.strategy.seed = any_seed();
  RC_ASSERT(validate(job.strategy));
  PairsRun run(job, any_seed());
  const auto fragments = fragments_of(*run.assembly.chunks, job.strategy.cadence.fragments);
  const auto initial = run.parameters(0);
  RC_ASSERT(run.world.run());
  for (std::size_t c = 0; c < fragments.size(); ++c) {
    const Range range = (*run.assembly.chunks)[ChunkId(c)].range;
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end);
         ++i) {
      PairReference value(static_cast<double>(initial[i]), i, fragments[c], job);
      for (Iteration t = 1; t <= kPairsLength; ++t) {
        value.step(t);
      }
      for (std::size_t rank = 0; rank < job.topology.workers(); ++rank) {
        RC_ASSERT(std::abs(static_cast<double>(run.parameters(rank)[i]) - value.own(rank)) < 1e-5);
      }
    }
  }
}

RC_GTEST_PROP(OuterPairs, DoNotDependOnTheOrderOfEvents, ()) {
  Job job = pairs_job(any_cadence_of_pairs(), *rc::gen::inRange<std::size_t>(1, 8));
  job.topology = Topology(job.topology.workers(), *rc::gen::inRange<std::size_t>(1, 3), 0);
  PairsRun one(job, any_seed());
  PairsRun in_phases(job, any_seed(), *rc::gen::inRange<Iteration>(1, kPairsLength));
  RC_ASSERT(one.world.run());
  RC_ASSERT(in_phases.world.run());
  RC_ASSERT(in_phases.world.run_on(kPairsLength));
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    RC_ASSERT(one.parameters(w) == in_phases.parameters(w));
  }
}

// Nobody learns: the pull alone moves the workers, and leaves their mean where it is.
TEST(OuterPairs, DrawTogetherAndKeepTheMean) {
  constexpr std::size_t kWorkers = 4;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Job job = pairs_job({.every = 1, .rate = 0.7, .pull = 0.7}, kWorkers);
    job.strategy.seed = seed;
    const Assembly assembly = assemble(job);
    const auto learners = toy_learners(kLayers, kWorkers);
    for (std::size_t w = 0; w < kWorkers; ++w) {
      std::ranges::fill(learners[w]->parameters(), static_cast<float>(w));
    }
    const VirtualNumbers numbers{.learners = learners,
                                 .chunks = assembly.chunks.get(),
                                 .rule = {.rate = {.base = 0}, .momentum = 0, .weight_decay = 0},
                                 .strategy = job.strategy};
    ShuffledWorld world(assembly.job, assembly.protocols, numbers, 40, seed);
    ASSERT_TRUE(world.run());
    double mean = 0;
    for (const auto& learner : learners) {
      const auto value = static_cast<double>(learner->parameters().front());
      mean += value / kWorkers;
      EXPECT_NEAR(value, 1.5, 0.1);
    }
    EXPECT_NEAR(mean, 1.5, 1e-5);
  }
}

// It had got further than the others before it was lost, and sends that share again.
TEST(OuterPairs, WhatAPartnerSentBeforeItWasLostDoesNotCountWhenItIsBack) {
  Job job = pairs_job({.every = 1, .outer = Outer::kMean}, 2);
  job.layers = lay_out({"only"}, {4});
  const Assembly assembly = assemble(job);
  Host& host = *assembly.hosts[0];
  testing::RecordedEffects driver;
  const auto has_stepped = [&] {
    return std::ranges::find(driver.started, WorkKind::kOuterStep, &Work::kind) !=
           driver.started.end();
  };
  Message share =
      message_about(*assembly.chunks, ChunkId(0), MessageKind::kShare, NodeId(1), NodeId(0), 4);
  share.payload_bytes = 32;
  host.handle(Received{share, Payload(Bytes{32})}, driver);
  host.handle(PeerLost{HostId(1)}, driver);
  host.handle(PeerJoined{HostId(1), 3}, driver);
  host.handle(Started{NodeId(0), 3}, driver);
  host.handle(GradientReady{NodeId(0), LayerId(0), 3}, driver);
  host.handle(BackwardDone{NodeId(0), 3}, driver);
  for (std::size_t i = 0; i < driver.started.size(); ++i) {
    host.handle(Finished{driver.started[i], Payload(Bytes{32})}, driver);
  }
  EXPECT_FALSE(has_stepped());
  host.handle(Received{share, Payload(Bytes{32})}, driver);
  EXPECT_TRUE(has_stepped());
}

}  // namespace
}  // namespace sluice
