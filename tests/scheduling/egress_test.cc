#include "scheduling/egress.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace sluice {
namespace {

// A network that keeps each message until the test confirms it.
class HeldNetwork final : public Effects {
 public:
  void send(const Message& message, Payload) override { handed.push_back(message); }
  void start(Work) override {}
  void release(NodeId, LayerId, Iteration) override {}
  Payload borrow(NodeId, const BufferRange&) override { return {}; }
  Payload copy(NodeId, const BufferRange&) override { return {}; }

  static std::uint64_t urgency_of(const Message& m) { return urgency(m.iteration, m.priority); }

  std::vector<Message> handed;
};

Message message_of(std::uint32_t priority, Iteration iteration, Bytes bytes) {
  Message message;
  message.priority = priority;
  message.iteration = iteration;
  message.payload_bytes = bytes;
  return message;
}

TEST(Egress, AnEarlierIterationGoesBeforeAnEarlierLayer) {
  Strategy strategy;
  strategy.credit = 1;
  Egress egress(strategy, Topology(2, 1, 0));
  HeldNetwork network;
  egress.send(message_of(9, 1, 8), {}, network);
  egress.send(message_of(0, 2, 8), {}, network);
  egress.send(message_of(7, 1, 8), {}, network);
  egress.on_sent(network.handed.back(), network);
  EXPECT_EQ(network.handed.back(), message_of(7, 1, 8));
}

TEST(Egress, OnePeerDoesNotHoldUpTheOthers) {
  Strategy strategy;
  strategy.peer_credit = 8;
  Egress egress(strategy, Topology(3, 1, 0));
  HeldNetwork network;
  for (const std::size_t to : {1, 1, 2}) {
    Message message = message_of(0, 1, 8);
    message.to = NodeId(to);
    egress.send(message, {}, network);
  }
  ASSERT_EQ(network.handed.size(), 2);
  EXPECT_EQ(network.handed.back().to, NodeId(2));
}

// Without priority nothing is urgent, so only the credit per peer applies.
TEST(Egress, WithoutPriorityTheCommonCreditDoesNotCount) {
  Strategy strategy;
  strategy.order = Order::kFifo;
  strategy.credit = 1;
  Egress egress(strategy, Topology(3, 1, 0));
  HeldNetwork network;
  for (const std::size_t to : {1, 2}) {
    Message message = message_of(0, 1, 8);
    message.to = NodeId(to);
    egress.send(message, {}, network);
  }
  EXPECT_EQ(network.handed.size(), 2);
}

// With priority, nothing goes out while something more urgent waits.
RC_GTEST_PROP(EgressProperties, NothingPassesTheMoreUrgent, ()) {
  Strategy strategy;
  strategy.credit = *rc::gen::inRange<Bytes>(1, 100);
  strategy.peer_credit = strategy.credit;
  Egress egress(strategy, Topology(2, 1, 0));
  HeldNetwork network;
  std::multiset<std::uint64_t> waiting;
  std::size_t seen = 0;
  std::size_t confirmed = 0;
  const auto steps = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  for (const bool sends : steps) {
    if (sends) {
      const Message message =
          message_of(*rc::gen::inRange<std::uint32_t>(0, 5), *rc::gen::inRange<Iteration>(1, 3),
                     *rc::gen::inRange<Bytes>(1, 60));
      waiting.insert(HeldNetwork::urgency_of(message));
      egress.send(message, {}, network);
    } else if (egress.in_flight() > 0) {
      const Message oldest = network.handed[confirmed++];
      egress.on_sent(oldest, network);
    }
    for (; seen < network.handed.size(); ++seen) {
      const auto rank = HeldNetwork::urgency_of(network.handed[seen]);
      RC_ASSERT(rank == *waiting.begin());
      waiting.erase(waiting.begin());
    }
  }
}

}  // namespace
}  // namespace sluice
