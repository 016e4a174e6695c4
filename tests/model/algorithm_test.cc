#include "model/algorithm.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>
#include <string_view>

#include "model/strategy.h"

namespace sluice {
namespace {

enum class Shape : unsigned char { kRound, kSquare, kCount };

struct ShapeRow {
  Shape value;
  std::string_view name;
};

TEST(TraitsTable, HasEveryValueOnceAndInOrder) {
  constexpr ShapeRow kRound{Shape::kRound, "round"};
  constexpr ShapeRow kSquare{Shape::kSquare, "square"};
  EXPECT_TRUE(has_all_values(std::array{kRound, kSquare}));
  EXPECT_FALSE(has_all_values(std::array{kRound})) << "one is missing";
  EXPECT_FALSE(has_all_values(std::array{kSquare, kRound})) << "out of order";
  EXPECT_FALSE(has_all_values(std::array{kRound, kRound})) << "one stands twice";
  EXPECT_EQ(value_of(names_in(std::array{kRound, kSquare}), "square"), Shape::kSquare);
}

TEST(AlgorithmTraits, NamesTellAlgorithmsApart) {
  std::set<std::string_view> names;
  for (const AlgorithmTraits& algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm.name);
    EXPECT_TRUE(names.insert(algorithm.name).second);
    EXPECT_EQ(value_of(kAlgorithmNames, algorithm.name), algorithm.value);
    EXPECT_EQ(&traits_of(algorithm.value), &algorithm);
  }
}

TEST(AlgorithmTraits, GradientsInUseDependOnTheStrategy) {
  Strategy strategy;
  strategy.staleness = 3;
  strategy.pipeline_depth = 4;
  const auto slots = [&](Algorithm algorithm) {
    strategy.algorithm = algorithm;
    return strategy.gradient_slots();
  };
  EXPECT_EQ(slots(Algorithm::kBsp), 1U);
  EXPECT_EQ(slots(Algorithm::kAsp), 1U);
  EXPECT_EQ(slots(Algorithm::kSsp), 2U);
  EXPECT_EQ(slots(Algorithm::kPipe), 4U);
  strategy.staleness = 0;
  EXPECT_EQ(slots(Algorithm::kSsp), 1U) << "the server takes every gradient before the next";
}

TEST(AlgorithmTraits, ALeadIsWhatTheNamePromises) {
  Strategy strategy;
  strategy.staleness = 3;
  strategy.pipeline_depth = 4;
  const auto lead = [&](Algorithm algorithm) { return traits_of(algorithm).max_lead(strategy); };
  EXPECT_EQ(lead(Algorithm::kBsp), 0);
  EXPECT_EQ(lead(Algorithm::kSsp), 3);
  EXPECT_EQ(lead(Algorithm::kPipe), 3);
  strategy.cadence = {.every = 6, .delay = 2};
  EXPECT_EQ(lead(Algorithm::kLocal), 7);
  for (const AlgorithmTraits& algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm.name);
    if (algorithm.coupling == Coupling::kFree) {
      EXPECT_EQ(lead(algorithm.value), std::numeric_limits<Iteration>::max());
    }
  }
}

TEST(CodecTraits, ASizeIsWhatTheCodecWrites) {
  EXPECT_EQ(traits_of(Codec::kNone).size(1000), 4000);
  EXPECT_EQ(traits_of(Codec::kTruncate16).size(1000), 2000);
  EXPECT_EQ(traits_of(Codec::kQuantise8).size(1000), 1004);
  const CodecTraits nibbles{Codec::kNone, "nibbles", CodecKind::kDense, 4};
  EXPECT_EQ(nibbles.size(3), 2) << "a byte that is not full counts";
}

}  // namespace
}  // namespace sluice
