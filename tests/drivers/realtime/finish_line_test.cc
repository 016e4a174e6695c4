#include "drivers/realtime/finish_line.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using Pace = FinishLine::Pace;

Iteration train_on(FinishLine& line, Iteration from) {
  Iteration next = from;
  while (line.begin(next, from)) {
    ++next;
  }
  return next;
}

TEST(FinishLineTest, WithoutASignalTheLastIterationIsTheEnd) {
  FinishLine line(3, 7, Pace::kTogether);
  EXPECT_EQ(train_on(line, 3), 7);
}

TEST(FinishLineTest, AStepIsTakenInEveryPhase) {
  FinishLine line(3, 7, Pace::kTogether);
  line.end_at(line.hold());
  EXPECT_EQ(train_on(line, 3), 4);
}

// Wherever the processes are, all end at the same iteration, which none of them has passed, and no
// later than they must.
RC_GTEST_PROP(FinishLineTest, AllEndWhereTheFurthestIs, ()) {
  constexpr Iteration kLast = 20;
  const auto begun = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<Iteration>>(rc::gen::inRange<Iteration>(0, kLast + 1)));
  std::vector<std::unique_ptr<FinishLine>> lines;
  Iteration furthest = 0;
  for (const Iteration iterations : begun) {
    lines.push_back(std::make_unique<FinishLine>(0, kLast, Pace::kTogether));
    for (Iteration t = 0; t < iterations; ++t) {
      RC_ASSERT(lines.back()->begin(t, 0));
    }
    furthest = std::max(furthest, lines.back()->hold());
  }
  RC_ASSERT(furthest == std::max<Iteration>(1, std::ranges::max(begun)));
  for (std::size_t p = 0; p < lines.size(); ++p) {
    lines[p]->end_at(furthest);
    RC_ASSERT(train_on(*lines[p], begun[p]) == furthest);
  }
}

TEST(FinishLineTest, AtItsOwnPaceAWorkerEndsWhereItIs) {
  FinishLine line(0, 100, Pace::kEachItsOwn);
  for (Iteration t = 0; t < 9; ++t) {
    ASSERT_TRUE(line.begin(t, 0));
  }
  line.end_at(line.hold());
  EXPECT_FALSE(line.begin(9, 0));
  EXPECT_FALSE(line.begin(4, 0)) << "a slower worker of the same process";
  EXPECT_TRUE(line.begin(0, 0)) << "every worker takes one step";
  EXPECT_TRUE(line.begin(30, 30)) << "also one that began far ahead of the others";
  EXPECT_FALSE(line.begin(100, 100)) << "unless it has none to take";
}

TEST(FinishLineThreadsTest, AHeldWorkerGoesOnToTheEndThatIsAgreedOn) {
  FinishLine line(0, 100, Pace::kTogether);
  ASSERT_TRUE(line.begin(0, 0));
  ASSERT_EQ(line.hold(), 1);
  Iteration end = 0;
  std::jthread worker([&] { end = train_on(line, 1); });
  line.end_at(5);
  worker.join();
  EXPECT_EQ(end, 5);
}

TEST(FinishLineThreadsTest, AHeldWorkerCanBeCancelled) {
  FinishLine line(0, 100, Pace::kTogether);
  ASSERT_TRUE(line.begin(0, 0));
  line.hold();
  std::jthread worker([&] { EXPECT_THROW(line.begin(1, 0), Cancelled); });
  line.cancel();
}

}  // namespace
}  // namespace sluice
