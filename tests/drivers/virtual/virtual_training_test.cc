// Training in virtual time: what is reported, and that it does not matter when a step is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "nodes/presets.h"
#include "support/simulated.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

const std::vector<std::int64_t> kLayers{37, 0, 500, 12};
const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
constexpr Iteration kIterations = 12;

// Computes as late as it may.
class ComputeLate final : public Computing {
 public:
  void begin(std::size_t worker, Step step) override {
    EXPECT_FALSE(steps_.contains(worker)) << "a worker has one step at a time";
    steps_[worker] = std::move(step);
    at_a_time = std::max(at_a_time, steps_.size());
  }
  void finish(std::size_t worker) override { steps_.extract(worker).mapped()(); }

  std::size_t at_a_time = 0;

 private:
  std::map<std::size_t, Step> steps_;
};

// Its loss, or the gradient of one layer, is not a number in one iteration.
class BadLearner final : public Learner {
 public:
  explicit BadLearner(std::optional<std::size_t> layer) : layer_(layer) {}

  const std::vector<Layer>& layers() const override { return toy_.layers(); }
  std::span<float> parameters() override { return toy_.parameters(); }
  std::span<float> gradients() override { return toy_.gradients(); }
  void gradients_into(std::span<float> buffer) override { toy_.gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    NoHooks none;
    const auto loss = toy_.step(iteration, none);
    const bool is_bad = iteration == 3;
    if (is_bad && layer_) {
      gradients()[static_cast<std::size_t>(layers()[*layer_].range.begin)] =
          std::numeric_limits<float>::quiet_NaN();
    }
    for (std::size_t l = layers().size(); l-- > 0;) {
      hooks.gradient_ready(LayerId(l));
    }
    return is_bad && !layer_ ? std::numeric_limits<double>::infinity() : loss;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  testing::ToyLearner toy_{kLayers, 0};
  std::optional<std::size_t> layer_;
};

Strategy small(std::string_view preset) {
  Strategy strategy = find_preset(preset)->strategy;
  strategy.slice_params = 64;
  strategy.kvstore_split_params = 200;
  strategy.segment_params = 100;
  strategy.dgc.sparsity = 0.9;
  return strategy;
}

class VirtualTrainingTest : public ::testing::Test {
 protected:
  VirtualTrainingTest() {
    cluster_.topology = Topology(3, 1, 0);
    cluster_.bandwidth_gbps = 0.05;
    numbers_.rule = kRule;
  }

  SimulationResult run(std::string_view preset, Iteration iterations = kIterations) {
    if (learners_.empty()) {
      learners_ = testing::toy_learners(kLayers, cluster_.topology.workers());
    }
    numbers_.learners = learners_;
    return testing::run_simulated(testing::profile_of(kLayers, 10, 20), cluster_, small(preset),
                                  iterations, nullptr, &numbers_)
        .result;
  }

  std::vector<std::vector<float>> parameters() const {
    std::vector<std::vector<float>> all;
    for (const auto& learner : learners_) {
      const auto values = learner->parameters();
      all.emplace_back(values.begin(), values.end());
    }
    return all;
  }

  Cluster cluster_;
  std::vector<std::unique_ptr<Learner>> learners_;
  VirtualNumbers numbers_;
};

TEST_F(VirtualTrainingTest, ItDoesNotMatterWhenAStepIsComputed) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    learners_.clear();
    numbers_.computing = nullptr;
    const Time end = run(preset.name).end;
    const auto at_once = parameters();
    ComputeLate late;
    learners_.clear();
    numbers_.computing = &late;
    EXPECT_EQ(run(preset.name).end, end);
    EXPECT_EQ(parameters(), at_once);
    EXPECT_EQ(late.at_a_time, 3U) << "no two steps can be computed in parallel";
  }
}

TEST_F(VirtualTrainingTest, ReportsEveryStepWithItsLossAndItsTime) {
  std::map<std::pair<std::size_t, Iteration>, StepReport> steps;
  Time latest{0};
  numbers_.on_step = [&](const StepReport& step) {
    EXPECT_GE(step.at, latest);
    latest = step.at;
    EXPECT_TRUE(steps.try_emplace({step.rank, step.iteration}, step).second);
  };
  const SimulationResult result = run("p3");
  EXPECT_THAT(steps, SizeIs(3 * kIterations));
  const auto first = steps.at({0, 0});
  EXPECT_EQ(first.at, from_us(4 * 10 + 4 * 20));
  testing::ToyLearner alone(kLayers, 0);
  NoHooks hooks;
  EXPECT_EQ(first.loss, alone.step(0, hooks));
  EXPECT_NE(steps.at({0, 5}).loss, first.loss);
  EXPECT_LE(latest, result.end);
}

TEST_F(VirtualTrainingTest, AtABoundaryAllParametersAreIn) {
  std::vector<std::pair<Iteration, Time>> boundaries;
  std::vector<float> at_four;
  numbers_.boundary_every = 4;
  numbers_.on_boundary = [&](Iteration iteration, Time now) {
    boundaries.emplace_back(iteration, now);
    if (iteration == 4) {
      at_four = parameters().front();
    }
  };
  run("p3");
  ASSERT_THAT(boundaries, SizeIs(2));  // the end is not one
  EXPECT_EQ(boundaries[0].first, 4);
  EXPECT_EQ(boundaries[1].first, 8);
  EXPECT_LT(boundaries[0].second, boundaries[1].second);
  learners_.clear();
  numbers_.on_boundary = nullptr;
  run("p3", 4);
  EXPECT_EQ(at_four, parameters().front());
}

TEST_F(VirtualTrainingTest, WhatIsNotFiniteIsReportedBeforeAnybodySeesIt) {
  cluster_.topology = Topology(1, 1, 0);
  for (const std::optional<std::size_t> layer :
       {std::optional<std::size_t>(), std::optional<std::size_t>(2)}) {
    learners_.clear();
    learners_.push_back(std::make_unique<BadLearner>(layer));
    std::set<Iteration> stepped;
    numbers_.on_step = [&](const StepReport& step) { stepped.insert(step.iteration); };
    numbers_.on_nonfinite = [&](const NonFinite& found) {
      EXPECT_EQ(found.rank, 0U);
      EXPECT_EQ(found.iteration, 3);
      EXPECT_EQ(found.layer, layer ? std::optional(LayerId(*layer)) : std::nullopt);
      throw std::runtime_error("it diverges");
    };
    EXPECT_THROW(run("p3"), std::runtime_error);
    EXPECT_THAT(stepped, ElementsAre(0, 1, 2));
  }
}

TEST_F(VirtualTrainingTest, ASignalEndsAllWorkersAtTheSameIteration) {
  for (const char* preset : {"p3", "asp", "gosgd"}) {
    SCOPED_TRACE(preset);
    std::map<std::size_t, Iteration> last;
    int polls = 0;
    learners_.clear();
    numbers_.interrupted = [&] { return ++polls > 10 ? 15 : 0; };
    numbers_.on_step = [&](const StepReport& step) { last[step.rank] = step.iteration; };
    EXPECT_EQ(run(preset).stopped, 15);
    EXPECT_EQ(last[0], last[1]);
    EXPECT_EQ(last[0], last[2]);
    EXPECT_LT(last[0], kIterations - 1);
    EXPECT_GT(last[0], 0);
  }
}

TEST_F(VirtualTrainingTest, ASignalInTheLastIterationStopsNothing) {
  numbers_.on_step = [&](const StepReport& step) {
    if (step.iteration == kIterations - 2) {
      numbers_.interrupted = [] { return 2; };
    }
  };
  EXPECT_EQ(run("p3").stopped, std::nullopt);
}

TEST_F(VirtualTrainingTest, AFailedStepEndsTheRunAndTheOthersAreWaitedFor) {
  class Failing final : public Computing {
   public:
    void begin(std::size_t worker, Step /*step*/) override { begun.insert(worker); }
    void finish(std::size_t worker) override {
      begun.erase(worker);
      throw std::runtime_error("out of memory");
    }
    std::set<std::size_t> begun;
  };
  Failing failing;
  numbers_.computing = &failing;
  EXPECT_THROW(run("p3"), std::runtime_error);
  EXPECT_THAT(failing.begun, SizeIs(0));
}

}  // namespace
}  // namespace sluice
