#include "drivers/processes/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace sluice {
namespace {

using ::testing::Optional;

const std::vector<Layer> kLayers = lay_out({"conv1", "fc2"}, {10, 20});

Heartbeat at(const std::string& host, std::size_t layer, Iteration iteration, bool waiting,
             double still) {
  return {.host = host,
          .worker = Gate::Position{LayerId(layer), iteration, waiting},
          .still_seconds = still,
          .outgoing = {},
          .incoming = {}};
}

TEST(HeartbeatTest, SurvivesTheWay) {
  Heartbeat heartbeat = at("a", 1, 7, true, 3.5);
  heartbeat.outgoing = InFlight{MessageKind::kPush, LayerId(1), 2, 0.25};
  const auto decoded = decode_heartbeat(encode(heartbeat));
  ASSERT_TRUE(decoded);
  const Heartbeat& copy = *decoded;
  EXPECT_EQ(copy.host, "a");
  EXPECT_EQ(copy.worker, heartbeat.worker);
  EXPECT_EQ(copy.still_seconds, 3.5);
  ASSERT_TRUE(copy.outgoing);
  EXPECT_EQ(copy.outgoing->kind, MessageKind::kPush);
  EXPECT_EQ(copy.outgoing->layer, LayerId(1));
  EXPECT_EQ(copy.outgoing->peer, 2U);
  EXPECT_EQ(copy.outgoing->seconds, 0.25);
  EXPECT_FALSE(copy.incoming);
  heartbeat.incoming = std::exchange(heartbeat.outgoing, std::nullopt);
  const auto other = decode_heartbeat(encode(heartbeat));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->outgoing);
  EXPECT_TRUE(other->incoming);
}

TEST(HeartbeatTest, ATextThatIsNoneIsRefused) {
  Heartbeat heartbeat = at("a", 1, 7, true, 3.5);
  heartbeat.outgoing = InFlight{MessageKind::kPush, LayerId(1), 2, 0.25};
  const std::string text = encode(heartbeat);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(decode_heartbeat(text.substr(0, length))) << length;
  }
  heartbeat.outgoing->kind = static_cast<MessageKind>(kMessageKinds);
  EXPECT_FALSE(decode_heartbeat(encode(heartbeat)));
  EXPECT_FALSE(decode_heartbeat("[]"));
}

TEST(HeartbeatTest, NobodyWaitsLongEnough) {
  std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 9.9), at("b", 0, 5, false, 60)};
  EXPECT_EQ(diagnose(heartbeats, kLayers, 10), std::nullopt);
  heartbeats[0].still_seconds = 10;
  EXPECT_NE(diagnose(heartbeats, kLayers, 10), std::nullopt);
}

TEST(HeartbeatTest, ATieGoesToTheLowestRank) {
  const std::vector<Heartbeat> heartbeats{at("a", 1, 5, true, 30), at("b", 0, 5, true, 11),
                                          at("c", 0, 5, true, 12)};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10), Optional(::testing::StartsWith("rank 1 on b ")));
}

// A worker in the same iteration has nothing to send yet; one that is ahead has sent it.
TEST(HeartbeatTest, BlamesOnlyAWorkerThatIsBehind) {
  std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 12), at("b", 1, 5, false, 12)};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::EndsWith("nothing is in flight")));
  heartbeats[1].worker->iteration = 4;
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::HasSubstr("the gradient of rank 1 on b is not in")));
}

// It has no worker that could be behind.
TEST(HeartbeatTest, AServerNeitherWaitsNorHoldsUpOthers) {
  Heartbeat server{.host = "s", .worker = {}, .still_seconds = 99, .outgoing = {}, .incoming = {}};
  const auto copy = decode_heartbeat(encode(server));
  ASSERT_TRUE(copy);
  EXPECT_FALSE(copy->worker);
  EXPECT_EQ(diagnose(std::vector{at("a", 0, 5, false, 12), server}, kLayers, 10), std::nullopt);
  server.outgoing = InFlight{MessageKind::kParameters, LayerId(1), 0, 9};
  EXPECT_THAT(diagnose(std::vector{at("a", 0, 5, true, 12), server}, kLayers, 10),
              Optional(::testing::EndsWith("rank 1 on s has not got the parameters of layer fc2 "
                                           "through to rank 0 on a for 9 s")));
}

TEST(HeartbeatTest, NamesTheOldestOfSeveralTransfers) {
  std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 12), at("b", 0, 5, true, 12),
                                    at("c", 0, 5, true, 12)};
  heartbeats[0].outgoing = InFlight{MessageKind::kPush, LayerId(0), 1, 3};
  heartbeats[1].outgoing = InFlight{MessageKind::kGather, LayerId(1), 2, 9};
  heartbeats[2].outgoing = InFlight{MessageKind::kPush, LayerId(0), 0, 5};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::EndsWith("rank 1 on b has not got the summed gradient of layer "
                                           "fc2 through to rank 2 on c for 9 s")));
}

TEST(HeartbeatTest, NamesTheGradientThatIsMissing) {
  const std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 12), at("b", 1, 4, false, 12.2)};
  EXPECT_THAT(
      diagnose(heartbeats, kLayers, 10),
      Optional(std::string("rank 0 on a has waited 12 s for layer conv1 of iteration 5: the "
                           "gradient of rank 1 on b is not in; for 12 s it has not got "
                           "beyond layer fc2 of iteration 4")));
}

// It may evaluate its model, for instance.
TEST(HeartbeatTest, AProgramMayTakeItsTimeForAStep) {
  std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 12), at("b", 1, 4, false, 12.2)};
  EXPECT_EQ(diagnose(heartbeats, kLayers, 10, true), std::nullopt);
  heartbeats[1].worker->waiting = true;
  EXPECT_NE(diagnose(heartbeats, kLayers, 10, true), std::nullopt);
}

TEST(HeartbeatTest, NamesTheWorkerThatIsFurthestBehind) {
  const std::vector<Heartbeat> heartbeats{at("a", 1, 5, true, 12), at("b", 0, 5, true, 11)};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::StartsWith("rank 1 on b has waited 11 s for layer conv1")));
}

TEST(HeartbeatTest, NamesWhatIsInFlight) {
  std::vector<Heartbeat> heartbeats{at("a", 0, 5, true, 12), at("b", 0, 5, true, 12)};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::EndsWith("nothing is in flight")));
  heartbeats[1].outgoing = InFlight{MessageKind::kPush, LayerId(1), 0, 12};
  EXPECT_THAT(
      diagnose(heartbeats, kLayers, 10),
      Optional(::testing::EndsWith("rank 1 on b has not got the gradient of layer fc2 through "
                                   "to rank 0 on a for 12 s")));
  heartbeats[1].outgoing = InFlight{MessageKind::kAllReduce, LayerId(1), 1, 12};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::EndsWith(
                  "rank 1 on b has been in the MPI_Allreduce of layer fc2 for 12 s")));
  heartbeats[0].incoming = InFlight{MessageKind::kParameters, LayerId(0), 1, 11};
  EXPECT_THAT(diagnose(heartbeats, kLayers, 10),
              Optional(::testing::EndsWith("parameters of layer conv1 in flight from "
                                           "rank 1 on b to rank 0 on a for 11 s")));
}

}  // namespace
}  // namespace sluice
