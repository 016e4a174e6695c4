#include "drivers/processes/message_census.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(MessageCensus, NothingIsInFlightIfNothingChangesBetweenTwoRounds) {
  MessageCensus census(2);
  EXPECT_EQ(census.add({3, 1}), std::nullopt);
  EXPECT_EQ(census.add({1, 3}), false) << "the first round tells nothing";
  EXPECT_EQ(census.add({3, 1}), std::nullopt);
  EXPECT_EQ(census.add({1, 3}), true);
}

// One answers, gets a message, answers it and is asked again: as many were sent as received, but
// the other had not yet counted.
TEST(MessageCensus, AMessageBehindTheBackOfARoundShowsInTheNext) {
  MessageCensus census(2);
  census.add({0, 0});
  EXPECT_EQ(census.add({0, 0}), false);
  census.add({1, 1});
  EXPECT_EQ(census.add({1, 1}), false);
  census.add({1, 1});
  EXPECT_EQ(census.add({1, 1}), true);
}

TEST(MessageCensus, AMessageThatNobodyHasReceivedIsInFlight) {
  MessageCensus census(1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(census.add({2, 1}), false);
  }
}

}  // namespace
}  // namespace sluice
