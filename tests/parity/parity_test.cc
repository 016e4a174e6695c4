// What is simulated is what is shipped: on threads and in virtual time it ends with the same bits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"
#include "nodes/presets.h"
#include "support/simulated.h"
#include "support/talkative.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::run_simulated;
using testing::run_threaded;
using testing::toy_learners;

const std::vector<std::int64_t> kLayers{37, 0, 500, 12, 260, 3};
const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
constexpr Iteration kIterations = 50;

Strategy small(std::string_view preset) {
  Strategy strategy = testing::talkative(find_preset(preset)->strategy);
  strategy.slice_params = 64;
  strategy.kvstore_split_params = 200;
  strategy.credit = 512;
  strategy.segment_params = 100;
  strategy.dgc.sparsity = 0.9;
  // The two drivers have other links to choose a collective by.
  if (!strategy.travels_whole()) {
    strategy.collective = Collective::kRing;
  }
  return strategy;
}

// Those whose result does not depend on who happens to be faster.
bool is_deterministic(const Preset& preset) {
  const Algorithm algorithm = preset.strategy.algorithm;
  return algorithm == Algorithm::kBsp || algorithm == Algorithm::kPipe ||
         algorithm == Algorithm::kLocal;
}

std::vector<float> parameters_of(Learner& learner) {
  const auto values = learner.parameters();
  return {values.begin(), values.end()};
}

// Of all workers, one after the other, if local steps have led them apart, else of the first.
std::vector<float> result_of(const std::vector<std::unique_ptr<Learner>>& learners,
                             const Strategy& strategy) {
  std::vector<float> result = parameters_of(*learners.front());
  for (std::size_t w = 1; w < learners.size(); ++w) {
    const std::vector<float> own = parameters_of(*learners[w]);
    if (strategy.algorithm == Algorithm::kLocal) {
      result.insert(result.end(), own.begin(), own.end());
    } else {
      EXPECT_EQ(own, result);
    }
  }
  return result;
}

std::vector<float> on_threads(const Strategy& strategy, const Topology& topology,
                              Iteration iterations = kIterations) {
  const auto learners = toy_learners(kLayers, topology.workers());
  run_threaded(learners, topology, strategy, kRule, iterations);
  return result_of(learners, strategy);
}

std::vector<float> in_virtual_time(const Strategy& strategy, const Topology& topology,
                                   Iteration iterations = kIterations) {
  const auto learners = toy_learners(kLayers, topology.workers());
  Cluster cluster;
  cluster.topology = topology;
  cluster.bandwidth_gbps = 1;
  const Profile profile = testing::profile_of(kLayers, 1, 2);
  VirtualNumbers numbers{.learners = learners, .chunks = nullptr, .rule = kRule, .strategy = {}};
  run_simulated(profile, cluster, strategy, iterations, nullptr, &numbers);
  return result_of(learners, strategy);
}

// Plain SGD on the joined batch: the mean gradient of all ranks, in double precision.
std::vector<float> single_process(std::size_t workers) {
  testing::ToyLearner learner(kLayers, 0);
  const auto initial = learner.parameters();
  std::vector<double> w(initial.begin(), initial.end());
  std::vector<double> v(w.size(), 0.0);
  for (Iteration t = 0; t < kIterations; ++t) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = 0;
      for (std::size_t r = 0; r < workers; ++r) {
        g += testing::ToyLearner::gradient(static_cast<float>(w[i]), i, r, t);
      }
      g = g / static_cast<double>(workers) + static_cast<double>(kRule.weight_decay) * w[i];
      v[i] = static_cast<double>(kRule.momentum) * v[i] + g;
      w[i] -= static_cast<double>(kRule.rate.base) * v[i];
    }
  }
  return {w.begin(), w.end()};
}

// A run whose gradients are whole numbers, and what it sent.
struct Exactly {
  std::vector<float> parameters;
  Counters counters;
};

class WholeLearner final : public Learner {
 public:
  explicit WholeLearner(std::size_t rank) : toy_(kLayers, rank), rank_(rank) {
    std::ranges::fill(toy_.parameters(), 0.0F);
  }

  const std::vector<Layer>& layers() const override { return toy_.layers(); }
  std::span<float> parameters() override { return toy_.parameters(); }
  std::span<float> gradients() override { return toy_.gradients(); }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    for (std::size_t l = 0; l < layers().size(); ++l) {
      hooks.before_layer(LayerId(l));
    }
    hooks.forward_done();
    const auto target = target_.empty() ? gradients() : target_;
    for (std::size_t l = layers().size(); l-- > 0;) {
      for (auto i = layers()[l].range.begin; i < layers()[l].range.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        target[at] =
            static_cast<float>(mix(at * 31 + rank_ + static_cast<std::uint64_t>(iteration)) % 7);
      }
      hooks.gradient_ready(LayerId(l));
    }
    return 0;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  testing::ToyLearner toy_;
  std::size_t rank_;
  std::span<float> target_;
};

Exactly exactly(const Strategy& strategy, const Topology& topology) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    learners.push_back(std::make_unique<WholeLearner>(w));
  }
  const UpdateRule rule{.rate = {.base = 1}, .momentum = 0, .weight_decay = 0};
  const Assembly assembly = run_threaded(learners, topology, strategy, rule, 10);
  return {parameters_of(*learners.front()), assembly.counters()};
}

class Parity : public ::testing::TestWithParam<std::size_t> {
 protected:
  Topology topology_ = Topology(GetParam(), 1, 0);
};

TEST_P(Parity, ServerPresetsGiveTheSameBits) {
  const auto p3 = on_threads(small("p3"), topology_);
  EXPECT_EQ(on_threads(small("slicing"), topology_), p3);
  EXPECT_EQ(on_threads(small("kvstore"), topology_), p3);
  EXPECT_EQ(on_threads(small("tensorflow"), topology_), p3);
  EXPECT_EQ(on_threads(small("ps-sync"), topology_), p3);
}

TEST_P(Parity, SspWithoutStalenessIsBsp) {
  Strategy ssp = small("ssp");
  ssp.staleness = 0;
  const auto bsp = on_threads(small("bsp"), topology_);
  EXPECT_EQ(on_threads(ssp, topology_), bsp);
  EXPECT_EQ(in_virtual_time(ssp, topology_), bsp);
}

TEST_P(Parity, APipelineOfDepthOneIsSynchronous) {
  Strategy pipe = small("pipe-sgd");
  pipe.pipeline_depth = 1;
  const auto d_sync = on_threads(small("d-sync"), topology_);
  EXPECT_EQ(on_threads(pipe, topology_), d_sync);
  pipe.pipeline_depth = 2;
  EXPECT_NE(on_threads(pipe, topology_), d_sync);
  pipe.pipeline_warmup = kIterations;
  EXPECT_EQ(on_threads(pipe, topology_), d_sync);
}

TEST_P(Parity, ThreadsAndVirtualTimeGiveTheSameBits) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Strategy strategy = small(preset.name);
    if (is_deterministic(preset)) {
      EXPECT_EQ(on_threads(strategy, topology_), in_virtual_time(strategy, topology_));
    }
  }
}

// The sums are those of the same chunks in both, and differ from those layer by layer.
TEST_P(Parity, HoldsForMergedLayers) {
  const std::vector<LayerGroup> groups{{4, 6}, {2, 4}, {0, 2}};
  const auto threaded = toy_learners(kLayers, GetParam());
  Job job = testing::job_for(threaded, topology_, small("mg-wfbp"));
  job.groups = groups;
  const Assembly assembly = run_threaded(threaded, job, kRule, kIterations);
  EXPECT_EQ(assembly.chunks->size(), groups.size());
  Cluster cluster;
  cluster.topology = topology_;
  cluster.bandwidth_gbps = 1;
  const auto simulated = toy_learners(kLayers, GetParam());
  const VirtualNumbers numbers{
      .learners = simulated, .chunks = nullptr, .rule = kRule, .strategy = job.strategy};
  run_simulated(testing::profile_of(kLayers, 1, 2), cluster, job, kIterations, nullptr, &numbers);
  for (const auto& learner : threaded) {
    EXPECT_EQ(parameters_of(*learner), parameters_of(*simulated.front()));
  }
}

// Servers add in the order of ranks, however the layers are cut. The order in an all-reduce depends
// on the chunk: there whole numbers have the same sums.
TEST_P(Parity, JoinedLayersGiveTheSameBits) {
  const auto joined = [](std::string_view preset) {
    Strategy strategy = small(preset);
    strategy.slice_params = 300;
    strategy.join_params = 300;
    return strategy;
  };
  const auto p3 = on_threads(small("p3"), topology_);
  for (const char* preset : {"p3", "slicing", "tensorflow"}) {
    SCOPED_TRACE(preset);
    EXPECT_EQ(on_threads(joined(preset), topology_), p3);
    EXPECT_EQ(in_virtual_time(joined(preset), topology_), p3);
  }
  for (const char* preset : {"p3", "slicing", "p3-allreduce", "wfbp"}) {
    SCOPED_TRACE(preset);
    EXPECT_EQ(on_threads(joined(preset), topology_), in_virtual_time(joined(preset), topology_));
    Strategy apart = joined(preset);
    apart.join_params = 0;
    const Exactly one_by_one = exactly(apart, topology_);
    const Exactly together = exactly(joined(preset), topology_);
    EXPECT_EQ(together.parameters, one_by_one.parameters);
    EXPECT_LT(together.counters.chunks, one_by_one.counters.chunks);
  }
}

TEST_P(Parity, EqualsOneProcessOnTheJoinedBatch) {
  const auto expected = single_process(GetParam());
  for (const Preset& preset : presets()) {
    if (preset.strategy.algorithm != Algorithm::kBsp || preset.strategy.coded()) {
      continue;
    }
    SCOPED_TRACE(preset.name);
    const auto actual = on_threads(small(preset.name), topology_);
    ASSERT_EQ(actual.size(), expected.size());
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      error += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
      size += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(error / size), 1e-5);
  }
}

TEST_P(Parity, HoldsForEveryCollectiveAndDenseCodec) {
  for (const Collective collective : kPlannedCollectives) {
    for (const Codec codec : {Codec::kNone, Codec::kTruncate16, Codec::kQuantise8}) {
      SCOPED_TRACE(name_of(kCollectiveNames, collective));
      SCOPED_TRACE(name_of(kCodecNames, codec));
      Strategy strategy = small("p3-allreduce");
      strategy.collective = collective;
      strategy.codec = codec;
      strategy.error_feedback = strategy.coded();
      EXPECT_EQ(on_threads(strategy, topology_), in_virtual_time(strategy, topology_));
    }
  }
}

TEST_P(Parity, HoldsForEveryCadenceAndDenseCodec) {
  for (const Cadence& cadence :
       {Cadence{.every = 4}, Cadence{.every = 7, .outer = Outer::kNesterov, .rate = 0.7},
        Cadence{.every = 6, .synchronous = 5, .fragments = 3, .delay = 4, .mix = 0.5}}) {
    for (const Codec codec : {Codec::kNone, Codec::kBf16, Codec::kQuantise8}) {
      SCOPED_TRACE(cadence.every);
      SCOPED_TRACE(name_of(kCodecNames, codec));
      Strategy strategy = small("local-sgd");
      strategy.cadence = cadence;
      strategy.codec = codec;
      strategy.error_feedback = strategy.coded();
      EXPECT_EQ(on_threads(strategy, topology_), in_virtual_time(strategy, topology_));
    }
  }
}

TEST_P(Parity, UpdatesOfWorkersAndOfServersGiveTheSameBits) {
  for (const char* preset : {"p3", "slicing", "kvstore", "tensorflow", "ps-sync", "bsp"}) {
    SCOPED_TRACE(preset);
    Strategy strategy = small(preset);
    const auto updated_by_servers = on_threads(strategy, topology_);
    strategy.update = Update::kWorker;
    EXPECT_EQ(on_threads(strategy, topology_), updated_by_servers);
    EXPECT_EQ(in_virtual_time(strategy, topology_), updated_by_servers);
    if (strategy.learners_can_update()) {
      strategy.learners_update = true;
      EXPECT_EQ(on_threads(strategy, topology_), updated_by_servers);
    }
  }
}

TEST_P(Parity, SumsThatComeBackPackedGiveTheSameBits) {
  for (const char* preset : {"p3", "kvstore", "tensorflow", "ps-sync"}) {
    for (const Codec codec : {Codec::kTruncate16, Codec::kQuantise8}) {
      SCOPED_TRACE(preset);
      SCOPED_TRACE(name_of(kCodecNames, codec));
      Strategy strategy = small(preset);
      strategy.codec = codec;
      strategy.error_feedback = codec == Codec::kQuantise8;
      const auto in_threads = on_threads(strategy, topology_);
      EXPECT_EQ(in_virtual_time(strategy, topology_), in_threads);
      if (strategy.learners_can_update()) {
        strategy.learners_update = true;
        EXPECT_EQ(on_threads(strategy, topology_), in_threads);
      }
    }
  }
}

TEST_P(Parity, LearnersThatUpdateThemselvesEndWithTheSameBits) {
  std::size_t tried = 0;
  for (const Preset& preset : presets()) {
    Strategy strategy = small(preset.name);
    if (!strategy.learners_can_update()) {
      continue;
    }
    SCOPED_TRACE(preset.name);
    ++tried;
    const auto updated_by_hosts = on_threads(strategy, topology_);
    strategy.learners_update = true;
    EXPECT_EQ(on_threads(strategy, topology_), updated_by_hosts);
  }
  EXPECT_GE(tried, 5U);
}

TEST_P(Parity, LearnersThatUpdateThemselvesKeepOnThroughPhases) {
  Strategy strategy = small("p3-allreduce");
  const auto in_one_phase = on_threads(strategy, topology_, 9);
  strategy.learners_update = true;
  const auto learners = toy_learners(kLayers, GetParam());
  Job job = testing::job_for(learners, topology_, strategy);
  std::optional<TrainingState> state;
  for (const Iteration last : {4, 5, 9}) {
    const Assembly assembly = assemble(job);
    if (!state) {
      state.emplace(testing::state_for(learners, assembly, kRule));
    }
    testing::run_phase(assembly, *state, last);
    EXPECT_EQ(assembly.counters().updates, 0);
    job.first = last;
  }
  EXPECT_EQ(parameters_of(*learners.front()), in_one_phase);
}

INSTANTIATE_TEST_SUITE_P(Workers, Parity, ::testing::Values(2, 3, 4));

void expect_parity(const std::vector<Topology>& topologies, bool local_aggregation) {
  for (const Topology& topology : topologies) {
    for (const Preset& preset : presets()) {
      SCOPED_TRACE(preset.name);
      Strategy strategy = small(preset.name);
      strategy.local_aggregation = local_aggregation;
      if (is_deterministic(preset) && validate(strategy)) {
        EXPECT_EQ(on_threads(strategy, topology, 10), in_virtual_time(strategy, topology, 10));
      }
    }
  }
}

TEST(ParityTopologies, SeveralWorkersAHostAndServersApart) {
  expect_parity({{2, 2, 0}, {3, 1, 2}, {1, 3, 1}, {3, 1, 2, 1, 2}, {2, 1, 0, 1, 2}, {2, 1, 2, 4}},
                false);
}

TEST(ParityTopologies, LocalAggregationSumsOnceAMachine) {
  expect_parity({{2, 3, 0}, {3, 2, 2}, {1, 4, 0}, {4, 1, 0, 2}}, true);
}

// Small whole numbers add up exactly in any order, so summing at home first changes no bit.
TEST(ParityTopologies, LocalAggregationChangesNothingButTheTraffic) {
  const Topology topology(2, 3, 0);
  for (const char* preset : {"p3", "kvstore", "wfbp", "pipe-sgd", "ps-sync"}) {
    SCOPED_TRACE(preset);
    Strategy strategy = small(preset);
    const Exactly plain = exactly(strategy, topology);
    strategy.local_aggregation = true;
    const Exactly summed = exactly(strategy, topology);
    EXPECT_EQ(summed.parameters, plain.parameters);
    EXPECT_EQ(plain.counters.local_sums, 0);
    EXPECT_GT(summed.counters.local_sums, 0);
    EXPECT_LT(summed.counters.payload_bytes, plain.counters.payload_bytes);
  }
}

}  // namespace
}  // namespace sluice
