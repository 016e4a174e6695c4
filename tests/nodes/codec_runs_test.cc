// What packed gradients promise to a whole run, under any order of delivery.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "support/shuffled.h"
#include "support/simulated.h"
#include "support/talkative.h"

namespace sluice {
namespace {

using testing::any_seed;
using testing::kLayers;
using testing::ShuffledRun;
using testing::toy_learners;

const UpdateRule kDecaying{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};

Strategy with_codec(std::string_view preset, Codec codec) {
  Strategy strategy = testing::talkative(find_preset(preset)->strategy);
  strategy.codec = codec;
  strategy.slice_params = 16;
  strategy.segment_params = 9;
  strategy.credit = 150;
  strategy.peer_credit = 100;
  return strategy;
}

// The parameters of every worker after a run in a shuffled world.
std::vector<std::vector<float>> run_shuffled(const Strategy& strategy, const Topology& topology,
                                             const UpdateRule& rule, std::uint64_t seed) {
  Job job;
  job.layers = toy_learners(kLayers, 1).front()->layers();
  job.topology = topology;
  job.strategy = strategy;
  ShuffledRun run(job, rule, seed);
  RC_ASSERT(run.run());
  std::vector<std::vector<float>> parameters;
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    parameters.push_back(run.parameters(w));
  }
  return parameters;
}

std::vector<std::vector<float>> run_shuffled(const Strategy& strategy, std::size_t workers,
                                             const UpdateRule& rule, std::uint64_t seed) {
  return run_shuffled(strategy, Topology(workers, 1, 0), rule, seed);
}

RC_GTEST_PROP(CodecRuns, PackedSumsAreTheSameOnEveryRank, ()) {
  Strategy strategy = with_codec(*rc::gen::element("p3-allreduce", "pipe-sgd", "wfbp", "d-sync"),
                                 *rc::gen::element(Codec::kTruncate16, Codec::kQuantise8));
  strategy.collective = *rc::gen::elementOf(kPlannedCollectives);
  strategy.error_feedback = *rc::gen::arbitrary<bool>();
  const auto workers = *rc::gen::inRange<std::size_t>(1, 10);
  const auto one = run_shuffled(strategy, workers, kDecaying, any_seed());
  const auto other = run_shuffled(strategy, workers, kDecaying, any_seed());
  // What one iteration of a pipeline loses goes into whichever is packed next.
  const bool any_order = strategy.error_feedback && strategy.algorithm == Algorithm::kPipe;
  for (std::size_t w = 0; w < workers; ++w) {
    RC_ASSERT(one[w] == one[0]);
    RC_ASSERT(any_order || one[w] == other[0]);
  }
}

RC_GTEST_PROP(CodecRuns, DgcThatHoldsNothingBackIsNoCodec, ()) {
  const std::string preset = *rc::gen::element<std::string>("bsp", "p3", "kvstore", "tensorflow",
                                                            "ar-sgd", "p3-allreduce");
  Strategy plain = with_codec(preset, Codec::kNone);
  plain.kvstore_split_params = 20;
  Strategy dgc = plain;
  dgc.codec = Codec::kDgc;
  dgc.dgc.sparsity = 0;
  dgc.dgc.momentum_correction = false;
  dgc.dgc.clipping = false;
  dgc.dgc.accumulation = *rc::gen::arbitrary<bool>();
  dgc.dgc.factor_masking = *rc::gen::arbitrary<bool>();
  // Its sum goes by recursive doubling, over whole chunks.
  plain.collective = Collective::kRecursiveDoubling;
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 0};
  const auto workers = *rc::gen::inRange<std::size_t>(1, 7);
  RC_ASSERT(run_shuffled(dgc, workers, rule, any_seed()) ==
            run_shuffled(plain, workers, rule, any_seed()));
}

RC_GTEST_PROP(CodecRuns, SparseReplicasAgree, ()) {
  Strategy strategy = with_codec(*rc::gen::element("bsp", "kvstore", "ar-sgd", "p3"), Codec::kDgc);
  strategy.dgc.sparsity = *rc::gen::element(0.5, 0.9, 0.999);
  strategy.dgc.momentum_correction = *rc::gen::arbitrary<bool>();
  strategy.dgc.factor_masking = *rc::gen::arbitrary<bool>();
  strategy.kvstore_split_params = 20;
  const auto workers = *rc::gen::inRange<std::size_t>(1, 7);
  const auto one = run_shuffled(strategy, workers, kDecaying, any_seed());
  const auto other = run_shuffled(strategy, workers, kDecaying, any_seed());
  for (std::size_t w = 0; w < workers; ++w) {
    RC_ASSERT(one[w] == other[0]);
  }
}

// Also where the workers of a machine sum first, chunk by chunk and in any order.
RC_GTEST_PROP(CodecRuns, DgcClipsALayerAsAWholeHoweverItIsCut, ()) {
  Strategy strategy = with_codec(*rc::gen::element("bsp", "ar-sgd"), Codec::kDgc);
  strategy.dgc.sparsity = 0;
  strategy.dgc.clip_norm = 0.1;
  strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  const Topology topology(*rc::gen::inRange<std::size_t>(1, 4), 2, 0);
  const auto whole = run_shuffled(strategy, topology, kDecaying, any_seed());
  strategy.partition = Partition::kSlice;
  RC_ASSERT(run_shuffled(strategy, topology, kDecaying, any_seed()) == whole);
}

// A learner whose gradient is the same in every iteration: what is lost shows as a drift.
class SteadyLearner final : public Learner {
 public:
  SteadyLearner(std::size_t rank, std::size_t size)
      : layers_(lay_out({"only"}, {static_cast<std::int64_t>(size)})),
        parameters_(size),
        gradients_(size) {
    Random random(rank + 1);
    for (float& g : gradients_) {
      g = static_cast<float>(random.uniform() - 0.3);
    }
    own_ = gradients_;
    target_ = gradients_;
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }
  std::optional<double> step(Iteration /*iteration*/, StepHooks& hooks) override {
    hooks.before_layer(LayerId(0));
    hooks.forward_done();
    std::copy(own_.begin(), own_.end(), target_.begin());
    hooks.gradient_ready(LayerId(0));
    return 0;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> own_;
  std::span<float> target_;
};

constexpr std::size_t kWorkers = 4;
constexpr std::size_t kSize = 60;

std::vector<std::unique_ptr<Learner>> steady_learners() {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    learners.push_back(std::make_unique<SteadyLearner>(w, kSize));
  }
  return learners;
}

void train_steadily(const std::vector<std::unique_ptr<Learner>>& learners, const Strategy& strategy,
                    Iteration iterations) {
  Cluster cluster;
  cluster.topology = Topology(kWorkers, 1, 0);
  cluster.bandwidth_gbps = 1;
  const VirtualNumbers numbers{.learners = learners,
                               .chunks = nullptr,
                               .rule = {.rate = {.base = 1}, .momentum = 0, .weight_decay = 0},
                               .strategy = {}};
  testing::run_simulated(testing::profile_of({kSize}, 1, 1), cluster, strategy, iterations, nullptr,
                         &numbers);
}

// The largest distance from where exact sums would have led, on the worker that ended last and so
// has seen the gradients of all.
double drift(const Strategy& strategy, Iteration iterations) {
  const auto learners = steady_learners();
  std::vector<double> mean(kSize);
  for (const auto& learner : learners) {
    for (std::size_t i = 0; i < kSize; ++i) {
      mean[i] += static_cast<double>(learner->gradients()[i]) / kWorkers;
    }
  }
  train_steadily(learners, strategy, iterations);
  double min = std::numeric_limits<double>::infinity();
  for (const auto& learner : learners) {
    double largest = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      const double exact = -mean[i] * static_cast<double>(iterations);
      const double actual = learner->parameters()[i];
      largest = std::max(largest, std::abs(actual - exact));
    }
    min = std::min(min, largest);
  }
  return min;
}

float upper_half(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U);
}

// Also the worker beside the server computes with what the others get.
TEST(CodecRuns, EveryWorkerUpdatesWithTheSumAsItWasPacked) {
  std::vector<float> expected(kSize);
  for (const auto& learner : steady_learners()) {
    for (std::size_t i = 0; i < kSize; ++i) {
      expected[i] += upper_half(learner->gradients()[i]);
    }
  }
  for (float& value : expected) {
    value = -upper_half(value) / kWorkers;
  }
  for (const char* preset : {"p3", "kvstore", "tensorflow", "bsp"}) {
    SCOPED_TRACE(preset);
    const auto learners = steady_learners();
    train_steadily(learners, with_codec(preset, Codec::kTruncate16), 1);
    for (const auto& learner : learners) {
      EXPECT_TRUE(std::ranges::equal(learner->parameters(), expected));
    }
  }
}

// Each gradient is packed once, and the sum once: it is off by two roundings at most.
TEST(CodecRuns, ADirectSumLosesNoMoreThanTwoRoundings) {
  constexpr double kHalfStep = 0x1p-8;  // of a bfloat16, relative
  Strategy strategy = with_codec("wfbp", Codec::kBf16);
  strategy.collective = Collective::kDirect;
  const auto learners = steady_learners();
  std::vector<double> exact(kSize);
  std::vector<double> bound(kSize);
  for (const auto& learner : learners) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const double gradient = learner->gradients()[i];
      exact[i] += gradient;
      bound[i] += std::abs(gradient) * kHalfStep;
    }
  }
  train_steadily(learners, strategy, 1);
  for (std::size_t i = 0; i < kSize; ++i) {
    const double sum =
        -static_cast<double>(kWorkers) * static_cast<double>(learners.front()->parameters()[i]);
    bound[i] += (std::abs(exact[i]) + bound[i]) * kHalfStep + 1e-6;
    EXPECT_LE(std::abs(sum - exact[i]), bound[i]);
  }
}

TEST(CodecRuns, ErrorFeedbackKeepsTheLossFromGrowing) {
  for (const Codec codec : {Codec::kTruncate16, Codec::kQuantise8}) {
    for (const char* preset : {"wfbp", "bsp"}) {
      SCOPED_TRACE(preset);
      Strategy strategy = with_codec(preset, codec);
      if (!strategy.uses_servers()) {
        strategy.collective = Collective::kRing;
      }
      strategy.segment_params = 1 << 20;
      const double without = drift(strategy, 400);
      strategy.error_feedback = true;
      EXPECT_LT(drift(strategy, 400), 0.05);
      EXPECT_GT(without, 0.2);
    }
  }
}

TEST(CodecRuns, FewBitsLoseNothingForGood) {
  for (const auto& [codec, step] :
       {std::pair{Codec::kQuantise4, 1.0 / 7}, {Codec::kQuantise2, 1.0}}) {
    Strategy strategy = with_codec("p3", codec);
    strategy.error_feedback = true;
    EXPECT_LT(drift(strategy, 400), 4 * step) << "what is kept back is a few steps";
    Strategy direct = with_codec("wfbp", codec);
    direct.error_feedback = true;
    direct.collective = Collective::kDirect;
    EXPECT_LT(drift(direct, 400), 4 * step);
    direct.error_feedback = false;
    EXPECT_GT(drift(direct, 400), 4 * step);
  }
}

RC_GTEST_PROP(CodecRuns, GatheredSumsAreTheSameOnEveryRank, ()) {
  Strategy strategy = with_codec(*rc::gen::element("p3-allreduce", "wfbp", "single"), Codec::kTopK);
  strategy.error_feedback = true;
  strategy.feedback_decay = *rc::gen::element(0.5, 1.0);
  strategy.top_k.bits = *rc::gen::element<std::int64_t>(2, 32);
  strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  const Topology topology(*rc::gen::inRange<std::size_t>(1, 10),
                          *rc::gen::inRange<std::size_t>(1, 3), 0);
  const auto one = run_shuffled(strategy, topology, kDecaying, any_seed());
  const auto other = run_shuffled(strategy, topology, kDecaying, any_seed());
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    RC_ASSERT(one[w] == other[0]);
  }
}

TEST(CodecRuns, TopKAppliesInTheEndAllThatWasProduced) {
  for (const std::int64_t bits : {2, 32}) {
    Strategy strategy = with_codec("wfbp", Codec::kTopK);
    strategy.error_feedback = true;
    strategy.top_k = {.block = 20, .kept = 4, .bits = bits};
    EXPECT_LT(drift(strategy, 400), 20);
    EXPECT_GT(drift(strategy, 400), 0) << "something is held back";
    strategy.feedback_decay = 0.5;
    EXPECT_GT(drift(strategy, 400), 40) << "what decays is lost";
  }
}

// An outer gradient is that of several steps.
TEST(CodecRuns, FewBitsOfOuterGradientsLoseNothingForGood) {
  for (const auto& [codec, step] :
       {std::pair{Codec::kQuantise4, 1.0 / 7}, {Codec::kQuantise2, 1.0}}) {
    Strategy strategy = with_codec("local-sgd", codec);
    strategy.cadence = {.every = 5};
    strategy.collective = Collective::kDirect;
    strategy.error_feedback = true;
    EXPECT_LT(drift(strategy, 400), 4 * 5 * step);
    strategy.error_feedback = false;
    EXPECT_GT(drift(strategy, 400), 4 * 5 * step);
  }
}

TEST(CodecRuns, DgcAppliesInTheEndAllThatWasProduced) {
  for (const char* preset : {"bsp", "ar-sgd", "asp", "ssp"}) {
    SCOPED_TRACE(preset);
    Strategy strategy = with_codec(preset, Codec::kDgc);
    strategy.dgc.sparsity = 0.9;
    strategy.dgc.momentum_correction = false;
    strategy.dgc.clipping = false;
    // A value of the steady gradient is sent at the latest when it has outgrown all the others.
    EXPECT_LT(drift(strategy, 400), 20);
    EXPECT_GT(drift(strategy, 400), 0) << "something is held back";
    strategy.dgc.accumulation = false;
    EXPECT_GT(drift(strategy, 400), 100) << "what is not sent is lost";
  }
}

// ---- bytes --------------------------------------------------------------------------------------

double bytes_an_iteration(const Strategy& strategy) {
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = 1;
  cluster.header_bytes = 0;
  const Profile profile = testing::profile_of({400'000, 600'000}, 100, 200);
  const auto run = testing::run_simulated(profile, cluster, strategy, 8);
  return static_cast<double>(run.result.bytes) / 8;
}

TEST(CodecRuns, PackedHopsCarryWhatTheCodecSays) {
  Strategy strategy = find_preset("wfbp")->strategy;
  strategy.collective = Collective::kRing;
  strategy.segment_params = 150'000;  // a segment for each layer
  const double plain = bytes_an_iteration(strategy);
  EXPECT_EQ(plain, 4.0 * 2 * 3 * 1e6);  // 2 (n - 1) M
  strategy.codec = Codec::kTruncate16;
  EXPECT_EQ(bytes_an_iteration(strategy), plain / 2);
  strategy.codec = Codec::kQuantise8;
  // A step of four bytes in each of 2 layers x 4 ranks x 6 rounds.
  EXPECT_EQ(bytes_an_iteration(strategy), plain / 4 + 4 * 2 * 4 * 6);
}

// Every host receives the codes of the three others.
TEST(CodecRuns, TopKGathersTheCodesOfAll) {
  Strategy strategy = find_preset("wfbp")->strategy;
  strategy.codec = Codec::kTopK;
  strategy.error_feedback = true;
  // 400,000 are 97 blocks and 2,688 values; 600,000 are 146 and 1,984.
  constexpr double kCodes = 97 * 84 + (59 + 4 + 16) + 146 * 84 + (56 + 4 + 16);
  EXPECT_EQ(bytes_an_iteration(strategy), 4 * 3 * kCodes);
}

TEST(CodecRuns, SumsOfServersComeBackPacked) {
  Strategy strategy = find_preset("p3")->strategy;
  const double plain = bytes_an_iteration(strategy);
  strategy.codec = Codec::kTruncate16;
  EXPECT_EQ(bytes_an_iteration(strategy), plain / 2);
  strategy.update = Update::kServer;
  EXPECT_EQ(bytes_an_iteration(strategy), plain * 3 / 4) << "parameters are not packed";
}

TEST(CodecRuns, DgcIsSparseBothWays) {
  Strategy strategy = find_preset("bsp+dgc")->strategy;
  // Three of four workers push to another host; the union of four goes back to three.
  EXPECT_EQ(bytes_an_iteration(strategy), 3 * (2 * 4 + 8 * 1000) + 3 * (2 * 16 + 8 * 4000));
}

}  // namespace
}  // namespace sluice
