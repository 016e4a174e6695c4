// PowerSGD as a whole: on threads against a short reference in PyTorch (golden/power_sgd.py wrote
// what a linear regression should be after every step), and what it promises under any order of
// delivery.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "drivers/virtual/bound.h"
#include "nodes/presets.h"
#include "nodes/shuffled_runs.h"
#include "nodes/validate.h"
#include "support/simulated.h"
#include "support/talkative.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::any_seed;
using testing::ShuffledRun;
using Values = std::vector<float>;

const nlohmann::json& golden_factors() {
  static const nlohmann::json file =
      nlohmann::json::parse(std::ifstream(SLUICE_SOURCE_DIR "/tests/nodes/golden/power_sgd.json"));
  return file;
}

Strategy power_sgd(std::int64_t rank) {
  Strategy strategy = find_preset("powersgd")->strategy;
  strategy.power_rank = rank;
  strategy.segment_params = 9;
  strategy.credit = 150;
  strategy.peer_credit = 100;
  return strategy;
}

// What a worker remembers under this name.
std::span<float> remembered(TrainingState& state, const Assembly& assembly, std::size_t rank,
                            const std::string& name) {
  const auto all = state.remembered(NodeId(rank), *assembly.chunks, assembly.job.topology);
  const auto found = std::ranges::find(all, name, &Remembered::name);
  check(found != all.end(), "a worker remembers this");
  return found->parts.front();
}

// Linear layers with a bias, of the same sample, each with targets of its own; half the squared
// error.
class LinearLayers final : public Learner {
 public:
  explicit LinearLayers(std::size_t rank)
      : samples_(golden_factors().at("samples").at(rank).get<std::vector<Values>>()),
        targets_(golden_factors().at("targets").at(rank).get<std::vector<Values>>()),
        parameters_(golden_factors().at("initial").get<Values>()),
        gradients_(parameters_.size()) {
    const std::int64_t inputs = golden_factors().at("inputs");
    std::vector<std::string> names;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t outputs : golden_factors().at("outputs")) {
      names.push_back(std::to_string(names.size()));
      sizes.push_back(outputs * (inputs + 1));
      outputs_.push_back(outputs);
    }
    layers_ = lay_out(names, sizes);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      layers_[l].matrix = {layers_[l].range.begin, outputs_[l], inputs};
    }
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void gradients_into(std::span<float> /*buffer*/) override {}

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    const Values& sample = samples_.at(static_cast<std::size_t>(iteration));
    Values errors = targets_.at(static_cast<std::size_t>(iteration));
    for (std::size_t l = 0, o = 0; l < layers_.size(); ++l) {
      hooks.before_layer(LayerId(l));
      for (std::int64_t i = 0; i < outputs_[l]; ++i, ++o) {
        errors[o] -= parameters_[bias(l, i)];
        for (std::size_t j = 0; j < sample.size(); ++j) {
          errors[o] -= parameters_[weight(l, i, j)] * sample[j];
        }
      }
    }
    hooks.forward_done();
    for (std::size_t l = layers_.size(), o = errors.size(); l-- > 0;) {
      for (std::int64_t i = outputs_[l]; i-- > 0;) {
        --o;
        gradients_[bias(l, i)] = -errors[o];
        for (std::size_t j = 0; j < sample.size(); ++j) {
          gradients_[weight(l, i, j)] = -errors[o] * sample[j];
        }
      }
      hooks.gradient_ready(LayerId(l));
    }
    return 0;
  }

  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  std::size_t weight(std::size_t layer, std::int64_t output, std::size_t input) const {
    const Matrix& matrix = layers_[layer].matrix;
    return static_cast<std::size_t>(matrix.begin + output * matrix.columns) + input;
  }
  std::size_t bias(std::size_t layer, std::int64_t output) const {
    return static_cast<std::size_t>(layers_[layer].matrix.range().end + output);
  }

  std::vector<Values> samples_;  // by iteration
  std::vector<Values> targets_;  // likewise
  std::vector<std::int64_t> outputs_;
  std::vector<Layer> layers_;
  Values parameters_;
  Values gradients_;
};

double difference_from(std::span<const float> actual, const nlohmann::json& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    largest =
        std::max(largest, std::abs(static_cast<double>(actual[i]) - expected[i].get<double>()));
  }
  return largest;
}

// After every step it rests. It begins with the right factor that the reference began with.
void expect_golden_factors(const nlohmann::json& run, const Strategy& strategy) {
  constexpr std::size_t kWorkers = 3;
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t rank = 0; rank < kWorkers; ++rank) {
    learners.push_back(std::make_unique<LinearLayers>(rank));
  }
  const Assembly assembly =
      assemble(testing::job_for(learners, Topology(kWorkers, 1, 0), strategy));
  TrainingState state = testing::state_for(learners, assembly,
                                           {.rate = {.base = 0.05F},
                                            .momentum = run.at("momentum"),
                                            .weight_decay = run.at("weight_decay")});
  const bool factored = strategy.factors(assembly.job.layers.front().matrix);
  for (std::size_t rank = 0; rank < kWorkers; ++rank) {
    std::span<float> right = remembered(state, assembly, rank, "powersgd.q");
    EXPECT_EQ(right.empty(), !factored);
    for (std::size_t k = 0; !right.empty(); ++k) {
      const auto column = golden_factors().at("q").at(k).get<Values>();
      std::ranges::copy(column, right.begin());
      right = right.subspan(column.size());
    }
  }
  Iteration step = 0;
  for (const nlohmann::json& expected : run.at("steps")) {
    testing::run_phase(assembly, state, step + 1, nullptr, {}, step);
    ++step;
    for (const auto& learner : learners) {
      EXPECT_LT(difference_from(learner->parameters(), expected), 1e-5) << "step " << step;
      EXPECT_TRUE(std::ranges::equal(learner->parameters(), learners.front()->parameters()));
    }
  }
  for (std::size_t rank = 0; factored && rank < kWorkers; ++rank) {
    EXPECT_LT(difference_from(remembered(state, assembly, rank, "powersgd.residual"),
                              run.at("residuals").at(rank)),
              1e-5);
  }
}

TEST(PowerSgdThreads, IsThatOfTheReferenceInPyTorch) {
  for (const auto& [name, run] : golden_factors().at("runs").items()) {
    for (const Order order : {Order::kPriority, Order::kFifo, Order::kAfterBackward}) {
      SCOPED_TRACE(name + ", order " + std::string(name_of(kOrderNames, order)));
      Strategy strategy = power_sgd(run.at("rank"));
      strategy.order = order;
      strategy.feedback_decay = run.at("decay");
      ASSERT_TRUE(validate(strategy));
      expect_golden_factors(run, strategy);
    }
  }
}

// Whoever is faster; also where the workers of a machine sum first.
RC_GTEST_PROP(PowerSgd, ReplicasAgreeInAnyOrder, ()) {
  Job job;
  job.layers = testing::toy_learners(testing::kLayers, 1).front()->layers();
  job.topology =
      Topology(*rc::gen::inRange<std::size_t>(1, 7), *rc::gen::inRange<std::size_t>(1, 3), 0);
  job.strategy = power_sgd(1);
  job.strategy.local_aggregation = *rc::gen::arbitrary<bool>();
  job.strategy.order = *rc::gen::element(Order::kPriority, Order::kFifo, Order::kAfterBackward);
  job.strategy.collective = *rc::gen::elementOf(kPlannedCollectives);
  job.strategy.sums_first = *rc::gen::element(SumsFirst::kSegment, SumsFirst::kModel);
  UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  rule.clip_norm = job.strategy.sums_first == SumsFirst::kModel ? 0.1F : 0.0F;
  ShuffledRun one(job, rule, any_seed());
  ShuffledRun other(job, rule, any_seed());
  RC_ASSERT(one.run());
  RC_ASSERT(other.run());
  for (std::size_t w = 0; w < job.topology.workers(); ++w) {
    RC_ASSERT(one.parameters(w) == other.parameters(0));
  }
}

// What all gradients have summed up to is what was applied, and what the factors have kept back.
TEST(PowerSgdThreads, NothingIsLostForGood) {
  constexpr Iteration kSteps = 30;
  const Topology topology(4, 1, 0);
  const std::vector<std::int64_t> sizes{500, 12, 260};
  const UpdateRule rule{.rate = {.base = 1e-3F}, .momentum = 0, .weight_decay = 0};
  const auto train = [&](const Strategy& strategy, auto look) {
    const auto learners = testing::toy_learners(sizes, topology.workers());
    const Assembly assembly = assemble(testing::job_for(learners, topology, strategy));
    TrainingState state = testing::state_for(learners, assembly, rule);
    testing::run_phase(assembly, state, kSteps);
    look(assembly, state);
    const auto parameters = learners.front()->parameters();
    return Values(parameters.begin(), parameters.end());
  };
  Strategy dense = power_sgd(1);
  dense.codec = Codec::kNone;
  dense.error_feedback = false;
  const Values exact = train(dense, [](const Assembly&, TrainingState&) {});
  Values kept(exact.size());
  const Values found = train(power_sgd(1), [&](const Assembly& assembly, TrainingState& state) {
    for (std::size_t rank = 0; rank < topology.workers(); ++rank) {
      const float* lost = remembered(state, assembly, rank, "powersgd.residual").data();
      for (const Layer& layer : assembly.job.layers) {
        const Range range = layer.matrix.range();
        for (std::int64_t i = range.begin; i < range.end && layer.range.size() > 12; ++i) {
          kept[static_cast<std::size_t>(i)] += *lost++ / static_cast<float>(topology.workers());
        }
      }
    }
  });
  double missing = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    missing = std::max<double>(missing, std::abs(found[i] - exact[i]));
    // The gradients of the two runs differ, since their parameters do, by little.
    EXPECT_NEAR(found[i] - rule.rate.base * kept[i], exact[i], 1e-4) << i;
  }
  EXPECT_GT(missing, 2e-3) << "something is kept back";
}

// How many right factors some worker has found.
class Found {
 public:
  void add(std::size_t matrices) {
    const std::lock_guard lock(mutex_);
    count_ += matrices;
    changed_.notify_all();
  }
  bool reaches(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

// Makes factors as a toy does, but finds the first right ones only when the other worker has found
// this many.
class SlowDevice final : public Learner {
 public:
  SlowDevice(const std::vector<std::int64_t>& sizes, std::size_t rank, std::size_t awaited,
             Found& own, Found& other)
      : toy_(sizes, rank), awaited_(awaited), own_(own), other_(other) {}

  bool has_waited_in_vain() const { return in_vain_; }

  void find_right_factors(std::span<const Range> matrices) override {
    in_vain_ = in_vain_ || !other_.reaches(std::exchange(awaited_, 0));
    toy_.find_right_factors(matrices);
    own_.add(matrices.size());
  }
  const std::vector<Layer>& layers() const override { return toy_.layers(); }
  std::span<float> parameters() override { return toy_.parameters(); }
  std::span<float> gradients() override { return toy_.gradients(); }
  void gradients_into(std::span<float> buffer) override { toy_.gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    return toy_.step(iteration, hooks);
  }
  void update_with(const UpdateRule& rule, const BatchShare& share) override {
    toy_.update_with(rule, share);
  }
  void pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                 const ChunkMap& chunks) override {
    toy_.pack_with(strategy, sender, chunks);
  }
  void settle(Iteration iteration) override { toy_.settle(iteration); }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  testing::ToyLearner toy_;
  std::size_t awaited_;
  Found& own_;
  Found& other_;
  bool in_vain_ = false;
};

// The other worker finds its factors with sums to which this one adds while its device is busy.
TEST(PowerSgdThreads, WaitingForADeviceHoldsUpNoMessages) {
  const std::vector<std::int64_t> sizes{500, 260, 12, 300, 400};
  Strategy strategy = power_sgd(1);
  strategy.learners_update = strategy.learners_pack = true;
  for (const bool aside : {false, true}) {
    Found first;
    Found second;
    std::vector<std::unique_ptr<Learner>> learners;
    learners.push_back(std::make_unique<SlowDevice>(sizes, 0, 4, first, second));
    learners.push_back(std::make_unique<SlowDevice>(sizes, 1, 0, second, first));
    const Assembly assembly = assemble(testing::job_for(learners, Topology(2, 1, 0), strategy));
    TrainingState state =
        testing::state_for(learners, assembly, {.rate = {.base = 0.05F}, .momentum = 0});
    std::optional<Offloading> offloading;
    if (aside) {
      offloading = Offloading{.while_busy = 1, .while_idle = 1, .threads = 1};
    }
    testing::run_phase(assembly, state, 2, nullptr, offloading);
    EXPECT_FALSE(static_cast<const SlowDevice&>(*learners.front()).has_waited_in_vain());
    EXPECT_TRUE(first.reaches(8));
    EXPECT_TRUE(std::ranges::equal(learners[0]->parameters(), learners[1]->parameters()));
  }
}

TEST(PowerSgd, SendsTheFactorsAndWhatIsNoMatrix) {
  constexpr std::int64_t kRows = 1000;
  constexpr std::int64_t kColumns = 600;
  constexpr std::int64_t kBias = 100;
  Profile profile = testing::profile_of({kRows * kColumns + kBias}, 100, 200);
  profile.layers.front().matrix = {0, kRows, kColumns};
  Cluster cluster;
  cluster.topology = Topology(4, 1, 0);
  cluster.bandwidth_gbps = 1;
  cluster.header_bytes = 0;
  for (const std::int64_t rank : {1, 4, 200}) {
    Strategy strategy = find_preset("powersgd")->strategy;
    strategy.power_rank = rank;
    strategy.collective = Collective::kRing;
    const auto run = testing::run_simulated(profile, cluster, strategy, 8);
    const std::int64_t floats =
        rank < 200 ? (kRows + kColumns) * rank + kBias : kRows * kColumns + kBias;
    EXPECT_EQ(run.result.bytes, 8 * 2 * 3 * floats * kFloatBytes);
    EXPECT_GE(run.result.iteration_time(),
              lower_bound(profile, cluster, strategy, *run.assembly.chunks));
    const Counters counters = run.assembly.counters();
    EXPECT_EQ(counters.before_packing, rank < 200 ? 8 * 4 * kRows * kColumns * kFloatBytes : 0);
    EXPECT_EQ(counters.after_packing,
              rank < 200 ? 8 * 4 * (kRows + kColumns) * rank * kFloatBytes : 0);
  }
}

// While the first layer's factors are on their way, the second's are computed and summed.
TEST(PowerSgd, TheSumsOfLayersOverlap) {
  constexpr std::int64_t kSide = 2000;
  const auto simulated = [&](std::size_t layers) {
    Profile profile = testing::profile_of(std::vector<std::int64_t>(layers, kSide * kSide), 10, 10);
    for (LayerProfile& layer : profile.layers) {
      layer.matrix = {0, kSide, kSide};
    }
    Cluster cluster;
    cluster.topology = Topology(4, 1, 0);
    cluster.bandwidth_gbps = 1;
    cluster.latency = from_us(500);
    return to_us(testing::run_simulated(profile, cluster, find_preset("powersgd")->strategy, 8)
                     .result.iteration_time());
  };
  EXPECT_LT(simulated(4), 0.8 * 4 * simulated(1));
}

}  // namespace
}  // namespace sluice
