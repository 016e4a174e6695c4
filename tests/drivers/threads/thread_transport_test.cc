// Which host gets which event of a message between Threads, and when.
#include "drivers/threads/thread_transport.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace sluice {
namespace {

// Two hosts with two workers each.
struct TwoHosts {
  std::deque<Event> heard(std::size_t host) {
    std::deque<Event> events;
    transport.mailbox(HostId(host)).drain(events);
    return events;
  }

  static Message message(std::size_t from, std::size_t to, bool wants_return) {
    Message message;
    message.from = NodeId(from);
    message.to = NodeId(to);
    message.wants_return = wants_return;
    message.payload_bytes = 12;
    return message;
  }

  std::vector<float> memory{1, 2, 3};
  ThreadTransport transport{Topology(2, 2, 0)};
};

TEST(ThreadTransport, HandsOverTheSendersMemory) {
  TwoHosts two;
  const Message message = TwoHosts::message(0, 3, false);
  two.transport.send(message, Payload(std::span<const float>(two.memory), nullptr));
  EXPECT_TRUE(two.heard(0).empty());
  const auto events = two.heard(1);
  ASSERT_EQ(events.size(), 1U);
  const auto& received = std::get<Received>(events.front());
  EXPECT_EQ(received.message, message);
  EXPECT_EQ(received.payload.values().data(), two.memory.data());
  EXPECT_EQ(received.payload.size(), 12);
}

TEST(ThreadTransport, ConfirmsWhatAnotherHostHasAccepted) {
  TwoHosts two;
  const Message away = TwoHosts::message(0, 2, false);
  two.transport.send(away, Payload(Bytes{12}));
  EXPECT_TRUE(two.heard(0).empty()) << "nobody has accepted it";
  two.transport.accepted(away);
  const auto events = two.heard(0);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<Sent>(events.front()).message, away);
  const Message here = TwoHosts::message(0, 1, false);
  two.transport.send(here, Payload(Bytes{12}));
  EXPECT_EQ(two.heard(0).size(), 1U);
  two.transport.accepted(here);
  EXPECT_TRUE(two.heard(0).empty()) << "what stays on the host needs no credit";
}

TEST(ThreadTransport, ReturnsALoanWhenTheLastReaderLetsGo) {
  TwoHosts two;
  for (const std::size_t to : {1U, 2U}) {
    const Message lent = TwoHosts::message(0, to, true);
    two.transport.send(lent, Payload(std::span<const float>(two.memory), nullptr));
    auto events = two.heard(to / 2);
    ASSERT_EQ(events.size(), 1U);
    Payload kept = std::get<Received>(events.front()).payload;
    two.transport.accepted(lent);
    events.clear();
    two.heard(0);
    EXPECT_TRUE(two.heard(0).empty()) << "a reader is left";
    EXPECT_EQ(kept.values()[1], 2);
    kept = {};
    const auto returned = two.heard(0);
    ASSERT_EQ(returned.size(), 1U);
    EXPECT_EQ(std::get<Returned>(returned.front()).message, lent);
  }
}

TEST(ThreadTransport, ReturnsNothingUnasked) {
  TwoHosts two;
  two.transport.send(TwoHosts::message(0, 2, false), Payload(Bytes{12}));
  two.heard(1);
  EXPECT_TRUE(two.heard(0).empty());
  EXPECT_FALSE(two.transport.is_busy());
  EXPECT_EQ(two.transport.patience(), std::nullopt) << "a loop may sleep until it is woken";
}

}  // namespace
}  // namespace sluice
