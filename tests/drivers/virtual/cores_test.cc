#include "drivers/virtual/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

struct Run {
  std::uint32_t index;
  Duration begin;
  Duration length;
  double threads = 1;
};

// When each of these is over, on one host.
std::map<std::uint32_t, double> ends_us(double cores, const std::vector<Run>& runs) {
  constexpr auto kBegin = Due::Kind::kCompute;
  constexpr auto kEnd = Due::Kind::kWorkDone;
  DueQueue due;
  Cores host(cores, 1, due);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    due.ready_at(runs[r].begin, {kBegin, static_cast<std::uint32_t>(r)});
  }
  std::map<std::uint32_t, double> ends;
  while (!due.empty()) {
    const Time now = due.next_time();
    const Due next = due.pop();
    if (next.kind == kBegin) {
      const Run& run = runs[next.index];
      host.run(HostId(0), {kEnd, run.index}, run.length, run.threads, now);
    } else if (next.kind == kEnd) {
      ends[next.index] = to_us(now);
    } else {
      while (const auto over = host.take_finished(HostId(0), now)) {
        ends[over->index] = to_us(now);
      }
    }
  }
  return ends;
}

TEST(CoresTest, WithoutALimitAllRunAtFullSpeed) {
  EXPECT_THAT(ends_us(0, {{1, from_us(0), from_us(10)}, {2, from_us(0), from_us(10)}}),
              ElementsAre(Pair(1, 10), Pair(2, 10)));
}

TEST(CoresTest, WhatRunsAtATimeSharesThem) {
  EXPECT_THAT(ends_us(1, {{1, from_us(0), from_us(10)}, {2, from_us(6), from_us(10)}}),
              ElementsAre(Pair(1, 14), Pair(2, 20)));
  EXPECT_THAT(ends_us(2, {{1, from_us(0), from_us(10)}, {2, from_us(6), from_us(10)}}),
              ElementsAre(Pair(1, 10), Pair(2, 16)));
}

TEST(CoresTest, AFractionOfACoreIsThatMuchSlower) {
  EXPECT_THAT(ends_us(0.5, {{1, from_us(0), from_us(10)}}), ElementsAre(Pair(1, 20)));
}

TEST(CoresTest, WhatNeedsNoCoreIsNeverSlowedDown) {
  EXPECT_THAT(ends_us(1, {{1, from_us(0), from_us(10), 0.0},
                          {2, from_us(0), from_us(10)},
                          {3, from_us(0), from_us(10), 3.0}}),
              ElementsAre(Pair(1, 10), Pair(2, 40), Pair(3, 40)));
}

TEST(CoresTest, NothingLastsNoTime) {
  EXPECT_THAT(ends_us(1, {{1, from_us(5), from_us(0)}, {2, from_us(5), from_us(0)}}),
              ElementsAre(Pair(1, 5), Pair(2, 5)));
}

// Of n that begin together, the shortest goes first; until then each gets its share of the cores.
RC_GTEST_PROP(CoresTest, EqualSharesHaveAClosedForm, ()) {
  const double cores = *rc::gen::inRange(1, 40) / 8.0;
  auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000));
  std::sort(lengths.begin(), lengths.end());
  std::vector<Run> runs;
  for (const int length : lengths) {
    runs.push_back({static_cast<std::uint32_t>(runs.size()), from_us(3), from_us(length)});
  }
  const auto ends = ends_us(cores, runs);
  RC_ASSERT(ends.size() == lengths.size());
  double now = 3;
  double before = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto running = static_cast<double>(lengths.size() - i);
    now += (lengths[i] - before) / std::min(1.0, cores / running);
    before = lengths[i];
    RC_ASSERT(std::abs(ends.at(static_cast<std::uint32_t>(i)) - now) < 1e-3);
  }
}

}  // namespace
}  // namespace sluice
