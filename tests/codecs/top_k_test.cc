#include "codecs/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "codecs/values.h"

namespace sluice {
namespace {

using testing::any_values;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kInf;
using testing::kNan;

bool is_larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && !std::isnan(b);
  }
  return std::fabs(a) > std::fabs(b);
}

std::vector<std::uint32_t> by_full_sort(const std::vector<float>& values, std::size_t k) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return is_larger(values[a], values[b]); });
  order.resize(std::min(k, order.size()));
  std::ranges::sort(order);
  return order;
}

RC_GTEST_PROP(TopKProperties, EqualsAFullSort, ()) {
  auto values = any_values(0, 30'000);
  const auto odd = *rc::gen::inRange<std::size_t>(0, 40);
  Random random(odd);
  for (std::size_t i = 0; i < odd && !values.empty(); ++i) {
    values[random.below(values.size())] = std::array{kNan, -kNan, kInf, -kInf}.at(random.below(4));
  }
  const auto k = *rc::gen::weightedOneOf<std::size_t>(
      {{3, rc::gen::inRange<std::size_t>(0, 100)},
       {1, rc::gen::inRange<std::size_t>(0, values.size() + 2)}});
  RC_ASSERT(top_k(values, k) == by_full_sort(values, k));
}

TEST(TopKTest, TakesTheFirstOfEqualMagnitudes) {
  EXPECT_THAT(top_k(std::vector{1.0F, -2.0F, 2.0F, -1.0F, 2.0F}, 2), ElementsAre(1, 2));
  EXPECT_THAT(top_k(std::vector<float>(100'000, -3.0F), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(top_k(std::vector<float>(100'000, 0.0F), 3), ElementsAre(0, 1, 2));
}

TEST(TopKTest, FindsTheLastOneThatIsLargerByABit) {
  std::vector<float> values(100'000, 1.0F);
  values.back() = std::nextafter(1.0F, 2.0F);
  EXPECT_THAT(top_k(values, 3), ElementsAre(0, 1, 99'999));
}

TEST(TopKTest, TakesWhatThereIs) {
  EXPECT_THAT(top_k(std::vector{1.0F, 2.0F}, 5), ElementsAre(0, 1));
  EXPECT_THAT(top_k(std::vector{1.0F, 2.0F}, 0), IsEmpty());
  EXPECT_THAT(top_k(std::vector<float>{}, 5), IsEmpty());
}

TEST(TopKTest, PutsNanAboveInfinityAboveNumbers) {
  const std::vector<float> values{1.0F, -kInf, 3e38F, kNan, kInf, -kNan};
  EXPECT_THAT(top_k(values, 2), ElementsAre(3, 5));
  EXPECT_THAT(top_k(values, 3), ElementsAre(1, 3, 5));
}

TEST(TopKTest, IsNotMisledByTheOrderOfTheValues) {
  constexpr std::size_t kCount = 200'000;
  std::vector<float> rising(kCount);
  std::iota(rising.begin(), rising.end(), 1.0F);
  const std::vector<float> falling(rising.rbegin(), rising.rend());
  std::vector<float> periodic(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    periodic[i] = i % 512 == 0 ? 1.0F + static_cast<float>(i) : 0.5F;
  }
  for (const auto& values : {rising, falling, periodic}) {
    for (const std::size_t k : {1, 200, 300, 1000}) {
      EXPECT_EQ(top_k(values, k), by_full_sort(values, k));
    }
  }
}

// Large exactly where the sample looks: the first guess at the threshold is far too high.
TEST(TopKTest, LowersAThresholdThatTooFewReach) {
  constexpr std::size_t kInterval = 512;
  auto values = testing::values_of(testing::Flavour::kSmooth, kInterval * 400, 1);
  Random random(0);
  for (std::size_t begin = 0; begin < values.size(); begin += kInterval) {
    values[begin + random.below(kInterval)] = 100;
  }
  for (const std::size_t k : {400, 401, 1000, 5000}) {
    EXPECT_EQ(top_k(values, k), by_full_sort(values, k));
  }
}

}  // namespace
}  // namespace sluice
