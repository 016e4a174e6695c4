#include "model/cadence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace sluice {
namespace {

std::vector<Iteration> begins(const Cadence& cadence, std::int64_t fragment, Iteration last) {
  std::vector<Iteration> found;
  for (Iteration t = 1; t <= last; ++t) {
    if (cadence.begins_at(t, fragment)) {
      found.push_back(t);
    }
  }
  return found;
}

TEST(CadenceTest, ExchangesComeAfterEverySoManySteps) {
  EXPECT_EQ(begins({.every = 1}, 0, 3), (std::vector<Iteration>{1, 2, 3}));
  EXPECT_EQ(begins({.every = 4}, 0, 13), (std::vector<Iteration>{4, 8, 12}));
  EXPECT_EQ(begins({.every = 4, .synchronous = 3}, 0, 13), (std::vector<Iteration>{7, 11}));
}

TEST(CadenceTest, FragmentsTakeTurns) {
  const Cadence cadence{.every = 6, .fragments = 2};
  EXPECT_EQ(begins(cadence, 0, 16), (std::vector<Iteration>{3, 9, 15}));
  EXPECT_EQ(begins(cadence, 1, 16), (std::vector<Iteration>{6, 12}));
}

RC_GTEST_PROP(CadenceTest, EachFragmentHasOneTurnOfItsOwn, ()) {
  Cadence cadence;
  cadence.every = *rc::gen::inRange<Iteration>(1, 40);
  cadence.fragments = *rc::gen::inRange<std::int64_t>(1, cadence.every + 1);
  cadence.synchronous = *rc::gen::inRange<Iteration>(0, 5);
  std::vector<Iteration> all;
  for (std::int64_t f = 0; f < cadence.fragments; ++f) {
    const auto own = begins(cadence, f, cadence.synchronous + cadence.every);
    RC_ASSERT(own.size() == 1U);
    RC_ASSERT(own.front() > cadence.synchronous);
    all.push_back(own.front());
  }
  RC_ASSERT(std::ranges::adjacent_find(all, std::greater_equal<>()) == all.end());
}

}  // namespace
}  // namespace sluice
