#include "drivers/hub/cuts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>

namespace sluice {
namespace {

const Time kEarly = from_us(1);
const Time kLate = from_us(1e6);

// Rank 0 leads, and nobody goes on without it.
bool all_but_rank_0(std::size_t rank) { return rank > 0; }

TEST(Cuts, GiveUpTheHigherRankOnceBothHaveHadTimeToTell) {
  Cuts cuts;
  EXPECT_FALSE(cuts.settle(kLate, all_but_rank_0));
  cuts.add(2, 1, kEarly);
  cuts.add(1, 2, kLate);
  EXPECT_FALSE(cuts.settle(from_us(1000), all_but_rank_0));
  const auto verdict = cuts.settle(kLate, all_but_rank_0);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->rank, 2U);
  EXPECT_EQ(verdict->other, 1U);
  EXPECT_FALSE(verdict->ends);
  cuts.forget(1);
  EXPECT_FALSE(cuts.settle(kLate, all_but_rank_0));
}

TEST(Cuts, GiveUpNobodyWhoIsNeeded) {
  Cuts cuts;
  cuts.add(1, 3, kEarly);
  const auto worker = cuts.settle(kLate, [](std::size_t rank) { return rank < 3; });
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->rank, 1U) << "3 is a server";
  const auto none = cuts.settle(kLate, [](std::size_t /*rank*/) { return false; });
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->ends);
  EXPECT_EQ(std::pair(none->other, none->rank), std::pair(std::size_t{1}, std::size_t{3}));
}

TEST(Cuts, GiveUpTheOneThatReachesFewest) {
  Cuts cuts;
  for (const std::size_t other : {0, 2, 3}) {
    cuts.add(1, other, kEarly);
  }
  EXPECT_EQ(cuts.settle(kLate, all_but_rank_0)->rank, 1U);
}

// In the end all who are left reach each other, and nobody was given up who reached all.
RC_GTEST_PROP(Cuts, LeaveWhoReachEachOther, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(2, 8);
  const auto rank = rc::gen::inRange<std::size_t>(0, size);
  const auto pairs =
      *rc::gen::container<std::set<std::pair<std::size_t, std::size_t>>>(rc::gen::suchThat(
          rc::gen::pair(rank, rank), [](const auto& pair) { return pair.first < pair.second; }));
  Cuts cuts;
  std::set<std::size_t> cut_off;
  for (const auto& [one, other] : pairs) {
    cuts.add(one, other, kEarly);
    cut_off.insert({one, other});
  }
  std::set<std::size_t> lost;
  while (const auto verdict = cuts.settle(kLate, all_but_rank_0)) {
    RC_ASSERT(!verdict->ends);
    RC_ASSERT(verdict->rank != 0);
    RC_ASSERT(cut_off.contains(verdict->rank));
    RC_ASSERT(lost.insert(verdict->rank).second);
    cuts.forget(verdict->rank);
  }
  for (const auto& [one, other] : pairs) {
    RC_ASSERT(lost.contains(one) || lost.contains(other));
  }
}

}  // namespace
}  // namespace sluice
