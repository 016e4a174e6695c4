#include "state/factor_coder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

constexpr std::int64_t kBegin = 7;

std::vector<Layer> layer_with(std::int64_t rows, std::int64_t columns) {
  std::vector<Layer> layers = lay_out({"vector", "matrix"}, {kBegin, rows * columns + 3});
  layers.back().matrix = {kBegin, rows, columns};
  return layers;
}

Strategy of_rank(std::int64_t rank, double decay = 1) {
  Strategy strategy;
  strategy.codec = Codec::kPowerSgd;
  strategy.power_rank = rank;
  strategy.error_feedback = true;
  strategy.feedback_decay = decay;
  return strategy;
}

std::vector<float> some_gradient(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(size);
  std::ranges::generate(values, [&] { return static_cast<float>(random.uniform() - 0.5); });
  return values;
}

// One worker's gradient through all three works, each in so many parts, done in any order.
std::vector<float> passed(FactorCoder& coder, std::vector<float> gradient, std::int64_t parts,
                          std::uint32_t workers = 1) {
  for (const WorkKind kind :
       {WorkKind::kLeftFactor, WorkKind::kRightFactor, WorkKind::kFromFactors}) {
    Work work;
    work.kind = kind;
    work.range = {kBegin, kBegin + std::ssize(gradient)};
    work.workers = workers;
    WorkInParts doing{.work = work, .parts = coder.cut(work, parts)};
    do {
      for (std::size_t p = doing.parts.size(); p-- > 0;) {
        coder.do_part(doing, p, gradient);
      }
    } while (FactorCoder::more(doing));
  }
  return gradient;
}

std::vector<float> residual_of(const FactorCoder& coder) {
  const auto values = coder.remembered().front().parts.front();
  return {values.begin(), values.end()};
}

RC_GTEST_PROP(FactorCoder, PartsGiveTheSameBits, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(12, 40);
  const auto columns = *rc::gen::inRange<std::int64_t>(12, 90);
  const auto layers = layer_with(rows, columns);
  const Strategy strategy = of_rank(*rc::gen::inRange<std::int64_t>(1, 3));
  RC_PRE(strategy.factors(layers.back().matrix));
  FactorCoder whole(strategy, layers);
  FactorCoder in_parts(strategy, layers);
  const auto parts = *rc::gen::inRange<std::int64_t>(2, 50);
  for (std::uint64_t t = 0; t < 3; ++t) {
    const auto gradient = some_gradient(static_cast<std::size_t>(rows * columns), t);
    RC_ASSERT(passed(in_parts, gradient, parts) == passed(whole, gradient, 1));
    RC_ASSERT(residual_of(in_parts) == residual_of(whole));
  }
}

TEST(FactorCoder, KeepsWhatTheFactorsLose) {
  const auto layers = layer_with(20, 30);
  for (const double decay : {1.0, 0.5}) {
    FactorCoder coder(of_rank(2, decay), layers);
    std::vector<float> before(600);
    for (std::uint64_t t = 0; t < 4; ++t) {
      const auto gradient = some_gradient(600, t);
      const auto sum = passed(coder, gradient, 1, 2);
      const auto after = residual_of(coder);
      for (std::size_t i = 0; i < 600; ++i) {
        EXPECT_NEAR(after[i], static_cast<float>(decay) * before[i] + gradient[i] - sum[i] / 2,
                    1e-6F);
      }
      before = after;
    }
  }
}

// The power iteration of a matrix that stays the same finds its two largest singular values.
TEST(FactorCoder, WarmStartsComeEverNearer) {
  std::vector<float> gradient(20 * 30);
  for (std::size_t i = 0; i < 20; ++i) {
    gradient[i * 30 + i] = i == 3 ? 8.0F : i == 11 ? 4.0F : 1.0F;
  }
  FactorCoder coder(of_rank(2, 0), layer_with(20, 30));
  std::vector<float> nearest;
  for (int t = 0; t < 20; ++t) {
    nearest = passed(coder, gradient, 1);
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(nearest[i], gradient[i] > 1 ? gradient[i] : 0, 1e-3F);
  }
}

TEST(FactorCoder, AZeroGradientDoesNotEndIt) {
  FactorCoder coder(of_rank(2), layer_with(20, 30));
  const std::vector<float> zeros(600);
  EXPECT_EQ(passed(coder, zeros, 1), zeros);
  const auto gradient = some_gradient(600, 1);
  EXPECT_NE(passed(coder, gradient, 1), zeros);
}

TEST(FactorCoder, SmallMatricesHaveNoState) {
  const FactorCoder coder(of_rank(8), layer_with(20, 30));
  for (const Remembered& one : coder.remembered()) {
    EXPECT_EQ(one.size(), 0U);
  }
}

}  // namespace
}  // namespace sluice
