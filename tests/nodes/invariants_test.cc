// What each algorithm promises, under any order of delivery that a seed can bring about.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nodes/assembly.h"
#include "nodes/gossip_worker.h"
#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "nodes/validate.h"
#include "nodes/worker.h"
#include "support/shuffled.h"
#include "support/talkative.h"

namespace sluice {
namespace {

using testing::any_seed;
using testing::kIterations;
using testing::kLayers;
using testing::ShuffledRun;
using testing::ShuffledWorld;
using testing::toy_learners;

const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 0};
const UpdateRule kStill{.rate = {.base = 0}, .momentum = 0, .weight_decay = 0};

// What a server takes an add to cost: nothing, or enough to begin a sum as soon as it can.
constexpr double kSumsAtTheEnd = 0;
constexpr double kSumsAtOnce = 1e6;

Job job_of(std::string_view preset, std::size_t workers) {
  Job job;
  job.layers = toy_learners(kLayers, 1).front()->layers();
  job.topology = Topology(workers, 1, 0);
  job.strategy = testing::talkative(find_preset(preset)->strategy);
  job.strategy.slice_params = 16;
  job.strategy.segment_params = 9;
  job.strategy.credit = 150;
  job.strategy.peer_credit = 100;
  return job;
}

// The same job with machines, threads and credits as they come.
Job any_job(std::string_view preset) {
  Job job = job_of(preset, 1);
  const auto hosts = *rc::gen::inRange<std::size_t>(1, 7);
  const auto per_host = *rc::gen::weightedElement<std::size_t>({{3, 1}, {1, 2}, {1, 3}});
  const auto servers_apart = *rc::gen::weightedElement<std::size_t>({{3, 0}, {1, 1}, {1, 2}});
  const bool apart = job.strategy.uses_servers() && servers_apart > 0;
  const auto servers_per_host = *rc::gen::weightedElement<std::size_t>({{3, 1}, {1, 2}});
  job.topology = Topology(hosts, per_host, apart ? servers_apart : 0, 1, servers_per_host);
  const bool together =
      job.strategy.algorithm == Algorithm::kBsp || job.strategy.algorithm == Algorithm::kPipe;
  job.strategy.local_aggregation = together && *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    job.strategy.update = Update::kWorker;
    job.strategy.update = validate(job.strategy) ? job.strategy.update : std::nullopt;
  }
  job.strategy.credit = *rc::gen::element<Bytes>(1, 64, 150, 1000);
  job.strategy.peer_credit = *rc::gen::element<Bytes>(1, 64, 100, 1000);
  job.server_threads = *rc::gen::inRange(1, 4);
  job.link.reduce_ns_per_byte = *rc::gen::element(kSumsAtTheEnd, kSumsAtOnce);
  return job;
}

RC_GTEST_PROP(AlgorithmInvariants, NoPresetLocksUp, ()) {
  for (int i = 0; i < 4; ++i) {
    const Preset preset = *rc::gen::elementOf(presets());
    ShuffledRun run(any_job(preset.name), kRule, any_seed());
    RC_ASSERT(run.run());
  }
}

RC_GTEST_PROP(AlgorithmInvariants, SynchronousPresetsDoNotDependOnTheOrder, ()) {
  for (int i = 0; i < 4; ++i) {
    const auto steps_together = [](const Preset& preset) {
      const Algorithm algorithm = preset.strategy.algorithm;
      return algorithm == Algorithm::kBsp || algorithm == Algorithm::kPipe;
    };
    const Preset preset = *rc::gen::suchThat(rc::gen::elementOf(presets()), steps_together);
    Job job = any_job(preset.name);
    if (!job.strategy.uses_servers() && !job.strategy.coded() && !job.strategy.local_aggregation) {
      job.strategy.collective = *rc::gen::element<std::optional<Collective>>(
          std::nullopt, Collective::kRing, Collective::kRecursiveDoubling,
          Collective::kHalvingDoubling, Collective::kBinaryTree, Collective::kDirect,
          Collective::kNative);
    }
    ShuffledRun one(job, kRule, any_seed());
    ShuffledRun other(job, kRule, any_seed());
    RC_ASSERT(one.run());
    RC_ASSERT(other.run());
    for (std::size_t w = 0; w < job.topology.workers(); ++w) {
      RC_ASSERT(one.parameters(w) == other.parameters(0));
    }
  }
}

RC_GTEST_PROP(AlgorithmInvariants, AServersSumHasTheSameBitsWheneverItBegins, ()) {
  const auto* const preset = *rc::gen::element("p3", "slicing", "kvstore", "tensorflow", "ps-sync");
  Job job = any_job(preset);
  job.strategy.codec = *rc::gen::element(Codec::kNone, Codec::kTruncate16, Codec::kQuantise8);
  job.link.reduce_ns_per_byte = kSumsAtTheEnd;
  ShuffledRun late(job, kRule, any_seed());
  job.link.reduce_ns_per_byte = kSumsAtOnce;
  ShuffledRun early(job, kRule, any_seed());
  RC_ASSERT(late.run());
  RC_ASSERT(early.run());
  RC_ASSERT(early.parameters(0) == late.parameters(0));
}

// A rank adds its part as a server adds a slice: in the order of ranks.
RC_GTEST_PROP(AlgorithmInvariants, ADirectSumHasTheBitsOfAServers, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(1, 8);
  ShuffledRun by_server(job_of("p3", workers), kRule, any_seed());
  Job job = job_of("p3-allreduce", workers);
  job.strategy.collective = Collective::kDirect;
  job.server_threads = *rc::gen::inRange(1, 4);
  ShuffledRun direct(job, kRule, any_seed());
  RC_ASSERT(by_server.run());
  RC_ASSERT(direct.run());
  RC_ASSERT(direct.parameters(0) == by_server.parameters(0));
}

RC_GTEST_PROP(AlgorithmInvariants, SspNeverGetsAheadOfTheBound, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(2, 6);
  Job job = job_of("ssp", workers);
  job.strategy.staleness = *rc::gen::inRange<Iteration>(0, 4);
  ShuffledRun run(job, kRule, any_seed());
  run.world.watch = [&](const ShuffledWorld& /*now*/) {
    // One more backward pass may be in flight.
    RC_ASSERT(run.lead() <= job.strategy.staleness + 1);
  };
  RC_ASSERT(run.run());
}

// Messages overtake each other, those of one worker to one server too.
TEST(AlgorithmInvariants, SspDoesNotDependOnTheOrderOfItsPushes) {
  for (const Iteration staleness : {1, 2, 3}) {
    Job job = job_of("ssp", 3);
    job.strategy.staleness = staleness;
    job.strategy.peer_credit = 1000;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      ASSERT_TRUE(ShuffledRun(job, kRule, seed).run()) << staleness << ", seed " << seed;
    }
  }
}

// That the bound is used, not only kept: some order lets a worker run ahead.
TEST(AlgorithmInvariants, SspLetsAFastWorkerRunAhead) {
  Job job = job_of("ssp", 3);
  job.strategy.staleness = 3;
  Iteration widest = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ShuffledRun run(job, kRule, seed);
    run.world.watch = [&](const ShuffledWorld& world) {
      for (std::size_t w = 0; w < 3; ++w) {
        widest = std::max(widest, world.iteration(0) - world.iteration(w));
      }
    };
    ASSERT_TRUE(run.run());
  }
  EXPECT_GE(widest, 2);
}

RC_GTEST_PROP(AlgorithmInvariants, GossipWeightsSumToOne, ()) {
  const auto workers = *rc::gen::inRange<std::size_t>(2, 7);
  Job job = job_of("gosgd", workers);
  job.strategy.gossip_probability = 0.7;
  job.strategy.seed = any_seed();
  const auto chunks = assemble(job).chunks;
  std::vector<std::unique_ptr<Worker>> nodes;
  std::vector<const GoSgdWorker*> gossips;
  std::vector<Protocol*> protocols;
  for (std::size_t w = 0; w < workers; ++w) {
    nodes.push_back(std::make_unique<Worker>(
        job, chunks, NodeId(w), [&](const auto& of, auto map, NodeId self, Completion& done) {
          auto gossip = std::make_unique<GoSgdWorker>(of, std::move(map), self, done);
          gossips.push_back(gossip.get());
          return gossip;
        }));
    protocols.push_back(nodes.back().get());
  }
  const auto learners = toy_learners(kLayers, workers);
  for (std::size_t w = 0; w < workers; ++w) {
    std::ranges::fill(learners[w]->parameters(), static_cast<float>(w));
  }
  const VirtualNumbers numbers{
      .learners = learners, .chunks = chunks.get(), .rule = kStill, .strategy = job.strategy};
  ShuffledWorld world(job, protocols, numbers, kIterations / 2, any_seed());
  world.has_egress = false;
  world.watch = [&](const ShuffledWorld& now) {
    for (std::size_t c = 0; c < chunks->size(); ++c) {
      double sum = now.flights().weight_in_flight(ChunkId(c));
      for (const GoSgdWorker* gossip : gossips) {
        sum += gossip->weight(ChunkId(c));
      }
      RC_ASSERT(std::abs(sum - 1) < 1e-12);
    }
  };
  // What was sent last is mixed in too, with its weight.
  const auto check_weighted_mean = [&] {
    for (std::size_t c = 0; c < chunks->size(); ++c) {
      const auto begin = static_cast<std::size_t>((*chunks)[ChunkId(c)].range.begin);
      double mean = 0;
      for (std::size_t w = 0; w < workers; ++w) {
        mean +=
            gossips[w]->weight(ChunkId(c)) * static_cast<double>(learners[w]->parameters()[begin]);
      }
      RC_ASSERT(std::abs(mean - static_cast<double>(workers - 1) / 2) < 1e-5);
    }
  };
  RC_ASSERT(world.run());
  check_weighted_mean();
  RC_ASSERT(world.run_on(kIterations));
  check_weighted_mean();
}

// With no learning, swaps draw the replicas together, and on the average leave them where they are.
TEST(AlgorithmInvariants, PairsDrawTheReplicasTogether) {
  constexpr int kRuns = 40;
  double spread = 0;
  double mean = 0;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    ShuffledRun run(job_of("ad-psgd", 4), kStill, seed);
    for (std::size_t w = 0; w < 4; ++w) {
      std::ranges::fill(run.learners[w]->parameters(), static_cast<float>(w));
    }
    ASSERT_TRUE(run.run());
    std::vector<float> ends;
    for (std::size_t w = 0; w < 4; ++w) {
      ends.push_back(run.parameters(w).front());
      mean += static_cast<double>(ends.back()) / (4 * kRuns);
    }
    const auto [min, max] = std::ranges::minmax(ends);
    spread += static_cast<double>(max - min) / kRuns;
  }
  EXPECT_LT(spread, 2.0) << "it was 3";
  EXPECT_GT(spread, 0.1) << "six iterations do not make them equal";
  EXPECT_NEAR(mean, 1.5, 0.3);
}

// EASGD with one worker: what the worker loses the centre gains.
RC_GTEST_PROP(AlgorithmInvariants, AnElasticStepConservesTheSum, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 200);
  Random random(any_seed());
  std::vector<float> centre(size);
  std::vector<float> visitor(size);
  for (std::size_t i = 0; i < size; ++i) {
    centre[i] = static_cast<float>(random.uniform());
    visitor[i] = static_cast<float>(random.uniform());
  }
  const auto before = centre;
  Workspace workspace(centre, {}, {}, {}, Topology(2, 1, 0));
  Work work;
  work.kind = WorkKind::kElastic;
  work.range = {0, static_cast<std::int64_t>(size)};
  work.pull = static_cast<float>(random.uniform());
  work.sources.push_back(Payload(std::span<const float>(visitor), nullptr));
  const Payload output = workspace.execute(work);
  for (std::size_t i = 0; i < size; ++i) {
    RC_ASSERT(std::abs(output.values()[i] + centre[i] - visitor[i] - before[i]) < 1e-6F);
  }
}

// The parameters of iteration t hold exactly the gradients up to t - K.
TEST(AlgorithmInvariants, APipelineUsesTheGradientOfKIterationsAgo) {
  for (const Iteration depth : {1, 2, 3}) {
    Job job = job_of("pipe-sgd", 3);
    job.strategy.pipeline_depth = depth;
    const UpdateRule plain{.rate = {.base = 1}, .momentum = 0, .weight_decay = 0};
    ShuffledRun run(job, plain, 5);
    const auto initial = run.parameters(0);
    ASSERT_TRUE(run.run());
    // The toy gradient is 0.3 w + noise(index, rank, iteration), so the recurrence can be followed.
    std::vector<std::vector<double>> history{{initial.begin(), initial.end()}};
    for (Iteration t = 0; t < kIterations; ++t) {
      history.push_back(history.back());
      const Iteration used = t + 1 - depth;
      if (used < 0) {
        continue;
      }
      for (std::size_t i = 0; i < initial.size(); ++i) {
        double mean = 0;
        for (std::size_t r = 0; r < 3; ++r) {
          const auto seen = static_cast<float>(history[static_cast<std::size_t>(used)][i]);
          mean += static_cast<double>(testing::ToyLearner::gradient(seen, i, r, used)) / 3;
        }
        history.back()[i] -= mean;
      }
    }
    const auto actual = run.parameters(1);
    for (std::size_t i = 0; i < initial.size(); ++i) {
      EXPECT_NEAR(actual[i], history.back()[i], 1e-4);
    }
  }
}

}  // namespace
}  // namespace sluice
