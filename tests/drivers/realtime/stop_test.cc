// The ways in which a run on threads ends early: by a signal, by numbers that are not finite, for
// lack of a thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <limits>
#include <stdexcept>

#include "nodes/presets.h"
#include "support/limited_threads.h"
#include "support/threaded.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using testing::limited_threads;
using testing::toy_learners;
using Learners = std::vector<std::unique_ptr<Learner>>;

constexpr std::size_t kWorkers = 3;
const std::vector<std::int64_t> kLayers{100, 0, 50, 7};

struct Callbacks {
  std::function<void(const StepReport&)> on_step{};
  OnNonFinite on_nonfinite{};
  std::function<int()> interrupted{};
  StartThread start = start_thread;
};

std::optional<int> train(const Learners& learners, const Strategy& strategy, Iteration iterations,
                         const Callbacks& callbacks) {
  const Assembly assembly =
      assemble(testing::job_for(learners, Topology(learners.size(), 1, 0), strategy));
  TrainingState state = testing::state_for(learners, assembly, {});
  const Clock clock;
  return train_on_threads({.topology = assembly.job.topology,
                           .chunks = *assembly.chunks,
                           .strategy = assembly.job.strategy,
                           .rules = *assembly.rules,
                           .hosts = assembly.protocols,
                           .state = state,
                           .last = iterations,
                           .clock = clock,
                           .on_step = callbacks.on_step,
                           .on_boundary = {},
                           .on_nonfinite = callbacks.on_nonfinite,
                           .interrupted = callbacks.interrupted,
                           .start = callbacks.start});
}

Strategy sliced(const Preset& preset) {
  Strategy strategy = preset.strategy;
  strategy.slice_params = 16;
  return strategy;
}

// Workers that wait for each other all take the same number of steps, and learn what a run of that
// length learns.
TEST(StopThreadsTest, ASignalStopsAnyPresetSoon) {
  constexpr Iteration kNever = 1'000'000'000;
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Learners learners = toy_learners(kLayers, kWorkers);
    std::vector<Iteration> steps(kWorkers, 0);
    std::atomic<int> signal = 0;
    const auto stopped = train(learners, sliced(preset), kNever,
                               {.on_step =
                                    [&](const StepReport& step) {
                                      signal = ++steps[step.rank] == 5 ? SIGTERM : signal.load();
                                    },
                                .interrupted = [&] { return signal.load(); }});
    EXPECT_EQ(stopped, SIGTERM);
    EXPECT_GE(std::ranges::min(steps), 1);
    const Algorithm algorithm = preset.strategy.algorithm;
    if (algorithm == Algorithm::kBsp || algorithm == Algorithm::kPipe) {
      EXPECT_EQ(steps, std::vector<Iteration>(kWorkers, steps[0]));
      const Learners others = toy_learners(kLayers, kWorkers);
      train(others, sliced(preset), steps[0], {});
      for (std::size_t w = 0; w < kWorkers; ++w) {
        EXPECT_TRUE(std::ranges::equal(learners[w]->parameters(), others[w]->parameters()));
      }
    }
  }
}

TEST(StopThreadsTest, WhoIsInterruptedFromTheStartTakesOneStep) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Learners learners = toy_learners(kLayers, kWorkers);
    std::size_t steps = 0;
    const auto stopped = train(
        learners, sliced(preset), 50,
        {.on_step = [&](const StepReport&) { ++steps; }, .interrupted = [] { return SIGINT; }});
    EXPECT_EQ(stopped, SIGINT);
    EXPECT_EQ(steps, kWorkers);
  }
}

// Corrupts a gradient or the loss of its fourth step.
class SpoilingLearner final : public Learner {
 public:
  SpoilingLearner(std::unique_ptr<Learner> inner, std::optional<LayerId> layer)
      : inner_(std::move(inner)), layer_(layer) {}
  const std::vector<Layer>& layers() const override { return inner_->layers(); }
  std::span<float> parameters() override { return inner_->parameters(); }
  std::span<float> gradients() override { return inner_->gradients(); }
  void gradients_into(std::span<float> buffer) override { inner_->gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    const bool now = iteration == 3;
    Spoiling spoiling(*this, hooks);
    const auto loss = inner_->step(iteration, now && layer_ ? spoiling : hooks);
    return now && !layer_ ? std::numeric_limits<double>::infinity() : loss;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  class Spoiling final : public StepHooks {
   public:
    Spoiling(SpoilingLearner& learner, StepHooks& hooks) : learner_(learner), hooks_(hooks) {}
    bool before_layer(LayerId layer) override { return hooks_.before_layer(layer); }
    void forward_done() override { hooks_.forward_done(); }
    void gradient_ready(LayerId layer) override {
      if (layer == learner_.layer_) {
        const auto last = static_cast<std::size_t>(learner_.layers()[layer.index()].range.end) - 1;
        learner_.gradients()[last] = std::numeric_limits<float>::quiet_NaN();
      }
      hooks_.gradient_ready(layer);
    }

   private:
    SpoilingLearner& learner_;
    StepHooks& hooks_;
  };

  std::unique_ptr<Learner> inner_;
  std::optional<LayerId> layer_;  // none: the loss
};

Learners one_spoils(std::optional<LayerId> layer) {
  Learners learners = toy_learners(kLayers, kWorkers);
  learners[1] = std::make_unique<SpoilingLearner>(std::move(learners[1]), layer);
  return learners;
}

// Nobody has learnt from it when the run ends.
TEST(StopThreadsTest, AGradientThatIsNotFiniteIsFoundBeforeItIsUsed) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Learners learners = one_spoils(LayerId(2));
    std::optional<NonFinite> found;
    const auto on_nonfinite = [&](const NonFinite& what) {
      found = what;
      throw std::runtime_error("not finite");
    };
    EXPECT_THROW(train(learners, sliced(preset), 10, {.on_nonfinite = on_nonfinite}),
                 std::runtime_error);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 1U);
    EXPECT_EQ(found->iteration, 3);
    EXPECT_EQ(found->layer, LayerId(2));
    for (const auto& learner : learners) {
      EXPECT_TRUE(
          std::ranges::all_of(learner->parameters(), [](float p) { return std::isfinite(p); }));
    }
  }
}

TEST(StopThreadsTest, ALossThatIsNotFiniteIsFound) {
  std::vector<NonFinite> found;
  std::vector<double> losses;
  train(one_spoils(std::nullopt), find_preset("p3")->strategy, 10,
        {.on_step =
             [&](const StepReport& step) {
               if (!std::isfinite(*step.loss)) {
                 losses.push_back(*step.loss);
               }
             },
         .on_nonfinite = [&](const NonFinite& what) { found.push_back(what); }});
  ASSERT_EQ(found.size(), 1U) << "a callback that does not throw lets the run continue";
  EXPECT_EQ(found[0].rank, 1U);
  EXPECT_EQ(found[0].iteration, 3);
  EXPECT_FALSE(found[0].layer);
  EXPECT_EQ(losses, std::vector{std::numeric_limits<double>::infinity()});
}

// Each worker and each host needs one; those that have started end again.
TEST(StopThreadsTest, AThreadThatCannotBeStartedEndsTheRun) {
  for (int limit = 0; limit < 2 * static_cast<int>(kWorkers); ++limit) {
    SCOPED_TRACE(limit);
    try {
      train(toy_learners(kLayers, kWorkers), find_preset("p3")->strategy, 10,
            {.start = limited_threads(limit)});
      ADD_FAILURE() << "the run should have failed";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no further thread");
    }
  }
  train(toy_learners(kLayers, kWorkers), find_preset("p3")->strategy, 10,
        {.start = limited_threads(2 * kWorkers)});
}

}  // namespace
}  // namespace sluice
