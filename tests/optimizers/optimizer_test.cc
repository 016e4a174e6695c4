#include "optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/random.h"
#include "optimizers/optimizer_state.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(static_cast<float>(random.uniform() * 2 - 1));
  }
  return made;
}

UpdateRule rule_by(Optimizer optimizer) {
  UpdateRule rule{.rate = {.base = 0.1F}, .momentum = 0.9F, .weight_decay = 0.01F};
  rule.optimizer = optimizer;
  rule.options = traits_of(optimizer).options;
  return rule;
}

std::vector<std::string_view> names_of(const UpdateRule& rule) {
  const StateNames names = rule.state();
  return {names.begin(), names.end()};
}

TEST(OptimizerState, IsNamedAsInTorch) {
  UpdateRule rule;
  EXPECT_THAT(names_of(rule), ElementsAre("momentum_buffer"));
  rule.momentum = 0;
  EXPECT_THAT(names_of(rule), IsEmpty());
  EXPECT_THAT(names_of(rule_by(Optimizer::kAdam)), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names_of(rule_by(Optimizer::kAdagrad)), ElementsAre("sum"));
  UpdateRule rms = rule_by(Optimizer::kRmsprop);
  EXPECT_THAT(names_of(rms), ElementsAre("square_avg", "momentum_buffer"));
  rms.options.centered = true;
  EXPECT_THAT(names_of(rms), ElementsAre("square_avg", "grad_avg", "momentum_buffer"));
  rms.momentum = 0;
  EXPECT_THAT(names_of(rms), ElementsAre("square_avg", "grad_avg"));
  const OptimizerState state(rms, 10);
  EXPECT_EQ(state.buffers().size(), 2U);
  EXPECT_EQ(state.part({2, 5})[1].size(), 3U);
  EXPECT_TRUE(state.part({2, 5})[2].empty());
}

// A value must not depend on the start of its slice.
RC_GTEST_PROP(OptimizerProperties, PartsGiveTheBitsOfTheWhole, ()) {
  constexpr std::int64_t kCount = 3000;
  const auto optimizer = static_cast<Optimizer>(*rc::gen::inRange(0, 5));
  const auto cut = *rc::gen::inRange<std::int64_t>(1, kCount);
  UpdateRule rule = rule_by(optimizer);
  rule.options.nesterov = *rc::gen::arbitrary<bool>();
  rule.options.centered = *rc::gen::arbitrary<bool>();
  rule.clip_value = *rc::gen::element(0.0F, 0.2F);
  const auto a = numbers(kCount, 3);
  const auto b = numbers(kCount, 4);
  std::vector<float> whole = numbers(kCount, 1);
  std::vector<float> parts = whole;
  const OptimizerState of_whole(rule, kCount);
  const OptimizerState of_parts(rule, kCount);
  const auto apply = [&](std::vector<float>& w, const OptimizerState& state, const Range& range,
                         Iteration iteration) {
    const auto part = [&](auto values) {
      return values.subspan(static_cast<std::size_t>(range.begin),
                            static_cast<std::size_t>(range.size()));
    };
    const std::vector<std::span<const float>> sources{part(std::span(a)), part(std::span(b))};
    rule.apply(part(std::span(w)), state.part(range), sources, BatchShare::all(2), iteration);
  };
  for (Iteration t = 1; t <= 3; ++t) {
    apply(whole, of_whole, {0, kCount}, t);
    apply(parts, of_parts, {0, cut}, t);
    apply(parts, of_parts, {cut, kCount}, t);
  }
  RC_ASSERT(whole == parts);
}

// You et al., algorithm 2, in double precision.
TEST(LambTest, IsThatOfItsPaper) {
  constexpr std::size_t kCount = 2500;
  UpdateRule rule = rule_by(Optimizer::kLamb);
  rule.rate.base = 0.01F;
  std::vector<float> w = numbers(kCount, 1);
  std::vector<double> x(w.begin(), w.end());
  std::vector<double> m(kCount);
  std::vector<double> v(kCount);
  const OptimizerState state(rule, kCount);
  for (Iteration t = 1; t <= 100; ++t) {
    const std::vector<float> gradient = numbers(kCount, 100 + static_cast<std::uint64_t>(t));
    const std::span<const float> source(gradient);
    rule.apply(w, state.part({0, kCount}), {&source, 1}, {}, t);
    std::vector<double> r(kCount);
    double of_x = 0;
    double of_r = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto g = static_cast<double>(gradient[i]);
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double mean = m[i] / (1 - std::pow(0.9, t));
      const double square = v[i] / (1 - std::pow(0.999, t));
      r[i] = mean / (std::sqrt(square) + 1e-6) + 0.01 * x[i];
      of_x += x[i] * x[i];
      of_r += r[i] * r[i];
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      x[i] -= static_cast<double>(rule.rate.base) * std::sqrt(of_x / of_r) * r[i];
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(static_cast<double>(w[i]), x[i], 1e-6 * std::max(1.0, std::abs(x[i]))) << i;
  }
}

TEST(LambTest, AStepFromZeroIsNotScaled) {
  UpdateRule rule = rule_by(Optimizer::kLamb);
  rule.weight_decay = 0;
  std::vector<float> w{0, 0};
  const std::vector<float> gradient{2, -2};
  const std::span<const float> source(gradient);
  const OptimizerState state(rule, 2);
  rule.apply(w, state.part({0, 2}), {&source, 1}, {}, 1);
  EXPECT_NEAR(w[0], -0.1F, 1e-6F);
  EXPECT_NEAR(w[1], 0.1F, 1e-6F);
}

TEST(ClippingTest, LimitsEachValueOfTheMean) {
  UpdateRule rule{.rate = {.base = 1}, .momentum = 0, .weight_decay = 0};
  rule.clip_value = 0.5F;
  std::vector<float> w{0, 0, 0};
  const std::vector<float> first{0.4F, 4, -4};
  const std::vector<float> second{0.4F, 0, 0};
  const std::vector<std::span<const float>> sources{first, second};
  rule.apply(w, {}, sources, BatchShare::all(2), 1);
  EXPECT_THAT(w, ElementsAre(-0.4F, -0.5F, 0.5F)) << "after the mean, not before";
}

TEST(ClippingTest, TheFactorOfANorm) {
  UpdateRule rule;
  rule.clip_norm = 2;
  EXPECT_EQ(rule.clip_factor(1), 1);
  EXPECT_EQ(rule.clip_factor(0), 1);
  EXPECT_NEAR(rule.clip_factor(8), 0.25F, 1e-6F);
}

RC_GTEST_PROP(OptimizerProperties, SquaresAreSummed, ()) {
  const auto values = numbers(*rc::gen::inRange<std::size_t>(0, 100), 7);
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  RC_ASSERT(std::abs(sum_of_squares(values) - sum) < 1e-9);
}

TEST(RateShapes, FallAfterTheWarmUp) {
  RateSchedule rate{.base = 1, .warmup = 10, .warmup_from = 0.5F};
  rate.end = 110;
  rate.final_share = 0.2F;
  rate.shape = RateShape::kLinear;
  EXPECT_FLOAT_EQ(rate.at(1), 0.5F);
  EXPECT_FLOAT_EQ(rate.at(6), 0.75F);
  EXPECT_FLOAT_EQ(rate.at(11), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(61), 0.6F);
  EXPECT_FLOAT_EQ(rate.at(111), 0.2F);
  EXPECT_FLOAT_EQ(rate.at(1000), 0.2F) << "after the end it stays";
  rate.shape = RateShape::kCosine;
  EXPECT_FLOAT_EQ(rate.at(11), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(36), 0.2F + 0.8F * (1 + std::sqrt(0.5F)) / 2);
  EXPECT_FLOAT_EQ(rate.at(61), 0.6F);
  rate.steps_of = 20;
  EXPECT_EQ(rate.at(61), rate.at(80)) << "once per epoch";
  EXPECT_LT(rate.at(81), rate.at(80));
  rate.shape = RateShape::kConstant;
  rate.drops = {5};
  EXPECT_EQ(rate.at(100), 1.0F);
  rate.shape = RateShape::kStep;
  rate.drop_factor = 0.5F;
  EXPECT_EQ(rate.at(100), 0.5F);
}

}  // namespace
}  // namespace sluice
