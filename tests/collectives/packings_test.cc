// How often a value is packed: counted by following every element through the plans of all ranks.
#include "collectives/packings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "collectives/plan.h"

namespace sluice {
namespace {

// What one rank holds.
struct Holding {
  Plan plan;
  std::vector<int> packings;  // by element
  Range packed;               // of which it has the code
};

struct Parcel {
  std::size_t to;
  std::size_t round;
  std::vector<int> packings;  // of the elements of its range
};

// Packs what the rank sends in this round, unless it passes on a code.
std::vector<int> sent(Holding& from, const Range& range, bool reduce) {
  const auto begin = from.packings.begin();
  std::vector<int> packings(begin + range.begin, begin + range.end);
  if (reduce || from.packed != range) {
    std::ranges::for_each(packings, [](int& count) { ++count; });
  }
  return packings;
}

// Where all ranks must agree on the values, the rank that packs them takes over what the code says.
void take_over(Holding& from, const Round& round) {
  const Range range = round.send ? round.send->range : round.shared.value_or(Range{});
  const bool adds_to_it = round.reduce && round.send && round.receive &&
                          round.send->range.begin < round.receive->range.end &&
                          round.receive->range.begin < round.send->range.end;
  if (adds_to_it || (!round.reduce && !range.empty() && from.packed != range)) {
    std::ranges::for_each(from.packings.begin() + range.begin, from.packings.begin() + range.end,
                          [](int& count) { ++count; });
    from.packed = range;
  }
}

void receive(Holding& at, const Round& round, const std::vector<int>& packings) {
  const Range range = round.receive->range;
  for (std::size_t i = 0; i < packings.size(); ++i) {
    int& own = at.packings[static_cast<std::size_t>(range.begin) + i];
    own = round.reduce ? std::max(own, packings[i]) : packings[i];
  }
  at.packed = round.reduce ? Range{} : range;
}

void step(std::vector<Holding>& ranks, std::size_t first, std::size_t end) {
  std::vector<Parcel> parcels;
  for (Holding& rank : ranks) {
    for (std::size_t r = first; r < end; ++r) {
      if (const auto& send = rank.plan[r].send) {
        parcels.push_back({send->peer, r, sent(rank, send->range, rank.plan[r].reduce)});
      }
    }
    for (std::size_t r = first; r < end; ++r) {
      take_over(rank, rank.plan[r]);
    }
  }
  for (const Parcel& parcel : parcels) {
    receive(ranks[parcel.to], ranks[parcel.to].plan[parcel.round], parcel.packings);
  }
}

int counted_packings(Collective collective, std::size_t size) {
  // So long that no part of a plan is empty.
  const auto whole = static_cast<std::int64_t>(size * std::bit_ceil(size));
  std::vector<Holding> ranks;
  for (std::size_t rank = 0; rank < size; ++rank) {
    ranks.push_back({.plan = make_plan(collective, rank, size, {0, whole}),
                     .packings = std::vector<int>(static_cast<std::size_t>(whole)),
                     .packed = {}});
  }
  for (std::size_t first = 0; first < ranks.front().plan.size();) {
    const std::size_t end = end_of_step(ranks.front().plan, first);
    step(ranks, first, end);
    first = end;
  }
  return std::ranges::max(ranks.front().packings);
}

TEST(Packings, AreThoseOnTheWayThroughThePlans) {
  for (const Collective collective : kPlannedCollectives) {
    for (std::size_t size = 1; size <= 20; ++size) {
      EXPECT_EQ(packings_of(collective, size), counted_packings(collective, size))
          << name_of(kCollectiveNames, collective) << " of " << size;
    }
  }
}

TEST(Packings, OfADirectSumAreTwoAndOfARingOneForEachRank) {
  EXPECT_EQ(packings_of(Collective::kDirect, 9), 2);
  EXPECT_EQ(packings_of(Collective::kRing, 9), 9);
  EXPECT_EQ(packings_of(Collective::kRing, 1), 0);
}

}  // namespace
}  // namespace sluice
