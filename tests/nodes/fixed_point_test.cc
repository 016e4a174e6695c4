// Where training comes to rest. With the loss a/2 |w - c_k|^2 at worker k and weight decay d,
// synchronous descent on the joined batch rests at w* = a mean(c) / (a + d). All algorithms share
// this point: weight decay means the same to all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "nodes/presets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

const std::vector<std::int64_t> kSizes{5, 3};
constexpr float kCurvature = 1;
// Momentum changes the way, not the end.
const UpdateRule kFalling{
    .rate = {.base = 0.1F, .drops = {100, 300}}, .momentum = 0.5F, .weight_decay = 0.5F};
constexpr Iteration kLong = 800;

class QuadraticLearner final : public Learner {
 public:
  explicit QuadraticLearner(std::size_t rank) : layers_(lay_out({"a", "b"}, kSizes)) {
    const auto size = static_cast<std::size_t>(total_params(layers_));
    parameters_.assign(size, 0.0F);
    gradients_.assign(size, 0.0F);
    target_ = gradients_;
    Random random(rank + 1);
    for (std::size_t i = 0; i < size; ++i) {
      centre_.push_back(static_cast<float>(1 + random.uniform()));
    }
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return gradients_; }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }
  std::optional<double> step(Iteration /*iteration*/, StepHooks& /*hooks*/) override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      target_[i] = kCurvature * (parameters_[i] - centre_[i]);
    }
    return 0;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

  float centre(std::size_t i) const { return centre_[i]; }

 private:
  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> centre_;
  std::span<float> target_;
};

// Computing takes far longer than messages: then AD-PSGD's passive workers, which never wait, take
// as many steps as the active ones, and all count alike.
constexpr double kForwardUs = 1000;
constexpr double kBackwardUs = 2000;

// The largest distance of any worker's parameter from w* after a long run with a falling rate.
double distance(const Strategy& strategy, const Topology& topology) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    learners.push_back(std::make_unique<QuadraticLearner>(w));
  }
  Cluster cluster;
  cluster.topology = topology;
  cluster.bandwidth_gbps = 1;
  const VirtualNumbers numbers{
      .learners = learners, .chunks = nullptr, .rule = kFalling, .strategy = {}};
  testing::run_simulated(testing::profile_of(kSizes, kForwardUs, kBackwardUs), cluster, strategy,
                         kLong, nullptr, &numbers);
  double largest = 0;
  for (std::size_t i = 0; i < learners.front()->parameters().size(); ++i) {
    double sum = 0;
    for (const auto& learner : learners) {
      sum += static_cast<double>(static_cast<QuadraticLearner&>(*learner).centre(i));
    }
    const double mean = sum / static_cast<double>(learners.size());
    const double rest =
        kCurvature * mean / (kCurvature + static_cast<double>(kFalling.weight_decay));
    for (const auto& learner : learners) {
      const auto value = static_cast<double>(learner->parameters()[i]);
      largest = std::max(largest, std::abs(value - rest));
    }
  }
  return largest;
}

// w* is about 1. With the decay taken twice, or half of it, a run would rest 0.2 away from it.
double tolerance(const Strategy& strategy) {
  constexpr double kRounding = 1e-3;
  // A dense code is off by up to 1/128 of the largest gradient in each hop, also at rest, since the
  // gradients of single workers are not zero there.
  constexpr double kCoding = 0.05;
  // Who steps alone is pulled to its own c_k between two exchanges, and what DGC holds back is
  // missing meanwhile: both in proportion to the rate, which is 0.001 at the end.
  constexpr double kDrift = 0.05;
  if (strategy.sparse()) {
    return kDrift;
  }
  if (strategy.coded()) {
    return kCoding;
  }
  const bool together =
      strategy.algorithm == Algorithm::kBsp || strategy.algorithm == Algorithm::kPipe;
  return together ? kRounding : kDrift;
}

Strategy resting(const Preset& preset) {
  Strategy strategy = preset.strategy;
  strategy.slice_params = 2;
  strategy.period = 1;
  strategy.gossip_probability = 1;
  strategy.dgc.sparsity = 0.75;
  // It takes velocity from those who send most, and so moves the fixed point where workers differ.
  strategy.dgc.factor_masking = false;
  return strategy;
}

TEST(FixedPoint, IsTheSameForAllPresets) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const Strategy strategy = resting(preset);
    EXPECT_LT(distance(strategy, Topology(4, 1, 0)), tolerance(strategy));
  }
}

TEST(FixedPoint, IsTheSameWithLocalAggregation) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    Strategy strategy = resting(preset);
    strategy.local_aggregation = true;
    if (validate(strategy)) {
      EXPECT_LT(distance(strategy, Topology(2, 2, 0)), tolerance(strategy));
    }
  }
}

}  // namespace
}  // namespace sluice
