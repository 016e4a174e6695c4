#include "drivers/processes/overdue.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Overdue, PollsUntilItIsDone) {
  int polls = 0;
  int warnings = 0;
  poll_until([&] { return ++polls == 4; }, [&] { ++warnings; });
  EXPECT_EQ(polls, 4);
  EXPECT_EQ(warnings, 0) << "it took far too little time for a warning";
}

TEST(Overdue, PollsWithinALimit) {
  for (const std::chrono::microseconds nap : {std::chrono::microseconds(0), kNap}) {
    int polls = 0;
    EXPECT_TRUE(poll_within(from_us(60e6), nap, [&] { return ++polls == 4; }));
    EXPECT_EQ(polls, 4);
  }
}

TEST(Overdue, LooksOnceEvenIfThereIsNoTime) {
  EXPECT_TRUE(poll_within(Duration(0), kNap, [] { return true; }));
  int polls = 0;
  EXPECT_FALSE(poll_within(Duration(0), kNap, [&] {
    ++polls;
    return false;
  }));
  EXPECT_EQ(polls, 1);
}

TEST(Overdue, EndsWithoutAWordIfItsTimeHasNotCome) {
  int warnings = 0;
  {
    const Overdue overdue([&] { ++warnings; });
  }
  EXPECT_EQ(warnings, 0);
}

}  // namespace
}  // namespace sluice
