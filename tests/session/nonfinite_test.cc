#include "session/nonfinite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

const std::vector<Layer> kTwoLayers = lay_out({"conv", "fc"}, {3, 4});

TEST(NonFiniteTest, IsDescribedByRankLayerAndStep) {
  EXPECT_EQ(describe({.rank = 2, .iteration = 6, .layer = LayerId(1)}, kTwoLayers),
            "rank 2: the gradient of layer fc is not finite in iteration 7");
  EXPECT_EQ(describe({.rank = 0, .iteration = 0, .layer = std::nullopt}, kTwoLayers),
            "rank 0: the loss is not finite in iteration 1");
}

TEST(NonFiniteTest, WarnsOncePerRankAndGoesOn) {
  std::vector<std::string> warnings;
  const OnNonFinite on_nonfinite = warn_of_nonfinite(
      kTwoLayers, [&](const std::string& warning) { warnings.push_back(warning); });
  for (const std::size_t rank : {1U, 1U, 0U, 1U}) {
    on_nonfinite({.rank = rank, .iteration = 4, .layer = LayerId(0)});
  }
  EXPECT_THAT(warnings, ElementsAre(StartsWith("rank 1: the gradient of layer conv"),
                                    StartsWith("rank 0: the gradient of layer conv")));
}

}  // namespace
}  // namespace sluice
