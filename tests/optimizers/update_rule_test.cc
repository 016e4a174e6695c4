#include "optimizers/update_rule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/random.h"

namespace sluice {
namespace {

std::vector<float> values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(static_cast<float>(random.uniform() * 2 - 1));
  }
  return made;
}

RC_GTEST_PROP(UpdateRuleProperties, IsMomentumSgdOnTheMean, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 5000);
  const auto workers = *rc::gen::inRange<std::size_t>(1, 6);
  const UpdateRule rule{.rate = {.base = 0.1F}, .momentum = 0.9F, .weight_decay = 0.01F};
  auto w = values(count, 1);
  auto v = values(count, 2);
  const auto w0 = w;
  const auto v0 = v;
  std::vector<std::vector<float>> gradients;
  std::vector<std::span<const float>> sources;
  for (std::size_t r = 0; r < workers; ++r) {
    gradients.push_back(values(count, 10 + r));
  }
  for (const auto& gradient : gradients) {
    sources.emplace_back(gradient);
  }
  rule.apply(w, {v}, sources, BatchShare::all(workers), 1);
  for (std::size_t i = 0; i < count; ++i) {
    double g = 0;
    for (const auto& gradient : gradients) {
      g += static_cast<double>(gradient[i]);
    }
    g = g / static_cast<double>(workers) + 0.01 * static_cast<double>(w0[i]);
    const double velocity = 0.9 * static_cast<double>(v0[i]) + g;
    RC_ASSERT(std::abs(static_cast<double>(v[i]) - velocity) < 1e-5);
    RC_ASSERT(std::abs(static_cast<double>(w[i]) - (static_cast<double>(w0[i]) - 0.1 * velocity)) <
              1e-5);
  }
}

// The gradients of all workers in one iteration cause one decay, even if each comes separately.
TEST(UpdateRuleTest, AShareOfTheBatchBringsItsShareOfTheDecay) {
  const UpdateRule rule{.rate = {.base = 0.5F}, .momentum = 0, .weight_decay = 0.25F};
  std::vector<float> w{8};
  std::vector<float> v{0};
  const std::vector<float> gradient{4};
  const std::vector<std::span<const float>> sources{gradient};
  rule.apply(w, {v}, sources, {.contributors = 1, .workers = 2}, 1);
  EXPECT_EQ(w[0], 8 - 0.5F * (4.0F / 2 + 0.25F / 2 * 8));
}

// A value must not depend on the start of its slice.
RC_GTEST_PROP(UpdateRuleProperties, SlicesGiveTheSameBits, ()) {
  constexpr std::size_t kCount = 3000;
  const auto cut = *rc::gen::inRange<std::size_t>(1, kCount);
  const UpdateRule rule{.rate = {.base = 0.1F}, .momentum = 0.9F, .weight_decay = 0.01F};
  const auto a = values(kCount, 3);
  const auto b = values(kCount, 4);
  auto whole_w = values(kCount, 1);
  auto whole_v = values(kCount, 2);
  auto cut_w = whole_w;
  auto cut_v = whole_v;
  const auto apply = [&](std::span<float> w, std::span<float> v, std::size_t begin,
                         std::size_t size) {
    const std::vector<std::span<const float>> sources{std::span(a).subspan(begin, size),
                                                      std::span(b).subspan(begin, size)};
    rule.apply(w.subspan(begin, size), {v.subspan(begin, size)}, sources, BatchShare::all(2), 1);
  };
  apply(whole_w, whole_v, 0, kCount);
  apply(cut_w, cut_v, 0, cut);
  apply(cut_w, cut_v, cut, kCount - cut);
  RC_ASSERT(whole_w == cut_w);
  RC_ASSERT(whole_v == cut_v);
}

TEST(RateSchedule, RisesGraduallyAndFallsInSteps) {
  const RateSchedule rate{.base = 1, .warmup = 4, .warmup_from = 0.2F, .drops = {10, 20}};
  const std::vector<std::pair<Iteration, float>> expected{
      {1, 0.2F}, {2, 0.4F}, {4, 0.8F}, {5, 1.0F}, {10, 1.0F}, {11, 0.1F}, {20, 0.1F}, {21, 0.01F}};
  for (const auto& [iteration, value] : expected) {
    EXPECT_FLOAT_EQ(rate.at(iteration), value) << iteration;
  }
}

}  // namespace
}  // namespace sluice
