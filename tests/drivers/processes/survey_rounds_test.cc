#include "drivers/processes/survey_rounds.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace sluice {
namespace {

std::vector<RankPair> all_pairs(std::size_t ranks) {
  std::vector<RankPair> pairs;
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = a + 1; b < ranks; ++b) {
      pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

RC_GTEST_PROP(SurveyRounds, MeasureEveryPairOnceAndKeepMachinesApart, ()) {
  const auto on = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
  std::vector<std::string> machines;
  for (const int machine : on) {
    machines.push_back("m" + std::to_string(machine));
  }
  const auto pairs = all_pairs(machines.size());
  std::vector<RankPair> measured;
  for (const auto& round : survey_rounds(pairs, machines)) {
    RC_ASSERT(!round.empty());
    std::set<std::string> busy;
    for (const auto& [a, b] : round) {
      RC_ASSERT(busy.insert(machines[a]).second);
      RC_ASSERT(machines[a] == machines[b] || busy.insert(machines[b]).second);
    }
    measured.insert(measured.end(), round.begin(), round.end());
  }
  std::ranges::sort(measured);
  RC_ASSERT(measured == pairs);
}

TEST(SurveyRounds, OfOneMachineHaveAPairEach) {
  const std::vector<std::string> machines(4, "alone");
  const auto rounds = survey_rounds(all_pairs(4), machines);
  EXPECT_EQ(rounds.size(), 6U);
  EXPECT_TRUE(survey_rounds({}, machines).empty());
}

TEST(SurveyRounds, AreAsFewAsCanBeForAPowerOfTwo) {
  for (const std::size_t ranks : {2U, 4U, 8U, 16U}) {
    std::vector<std::string> machines;
    for (std::size_t r = 0; r < ranks; ++r) {
      machines.push_back("m" + std::to_string(r));
    }
    EXPECT_EQ(survey_rounds(all_pairs(ranks), machines).size(), ranks - 1);
  }
}

}  // namespace
}  // namespace sluice
