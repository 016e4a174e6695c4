// The shuffled world itself: that it notices what a node must not do.
#include "support/shuffled.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/check.h"
#include "partition/chunk_map.h"
#include "support/choices.h"
#include "support/credit_watch.h"
#include "support/flights.h"
#include "support/loans.h"
#include "support/outages.h"
#include "support/pending.h"

namespace sluice {
namespace {

using testing::Choices;
using testing::CreditWatch;
using testing::Flight;
using testing::Loans;
using testing::Outages;
using testing::Pending;
using testing::ShuffledWorld;
using ChoiceKind = testing::Choice::Kind;

TEST(Loans, NoticeAChangeWhileAnybodyHoldsThem) {
  std::vector<float> memory{1, 2, 3};
  Loans loans;
  Payload one = loans.lend(memory);
  Payload other = one;
  loans.verify();
  memory[2] = 4;
  EXPECT_THROW(loans.verify(), InvariantError);
  memory[2] = 3;
  loans.verify();
  one = {};
  memory[0] = 0;
  EXPECT_THROW(loans.verify(), InvariantError);
  other = {};
  loans.verify();
}

Message message_to(std::size_t host, Bytes bytes) {
  Message message;
  message.from = NodeId(0);
  message.to = NodeId(host);
  message.payload_bytes = bytes;
  return message;
}

TEST(CreditWatch, NoticesMoreThanACredit) {
  Strategy strategy;
  strategy.order = Order::kPriority;
  strategy.credit = 100;
  strategy.peer_credit = 60;
  const Topology topology(3, 1, 0);
  CreditWatch watch(strategy, topology);
  watch.on_send(message_to(1, 60));
  EXPECT_THROW(watch.on_send(message_to(1, 1)), InvariantError);
  CreditWatch fresh(strategy, topology);
  fresh.on_send(message_to(1, 60));
  fresh.on_send(message_to(2, 40));
  EXPECT_THROW(fresh.on_send(message_to(2, 1)), InvariantError);
}

TEST(CreditWatch, LetsAMessageThatIsTooLargeGoAlone) {
  Strategy strategy;
  strategy.credit = 100;
  strategy.peer_credit = 60;
  CreditWatch watch(strategy, Topology(3, 1, 0));
  watch.on_send(message_to(1, 500));
  EXPECT_THROW(watch.on_send(message_to(2, 1)), InvariantError);
  CreditWatch fresh(strategy, Topology(3, 1, 0));
  fresh.on_send(message_to(1, 500));
  fresh.on_sent(message_to(1, 500));
  fresh.on_send(message_to(2, 1));
}

// What can happen, in its order.
std::vector<ChoiceKind> kinds_of(Choices& choices) {
  choices.clear();
  choices.add_pending();
  std::vector<ChoiceKind> kinds;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    kinds.push_back(choices[i].kind);
  }
  return kinds;
}

TEST(Choices, LeaveOutWhatStandsStill) {
  const Topology topology(3, 1, 0);
  Outages outages;
  Pending pending;
  Choices choices(topology, pending, outages);
  pending.flights.add({message_to(1, 8), Payload(8), Flight::Stage::kReference, 0.5});
  pending.flights.add({message_to(1, 0), {}, Flight::Stage::kReference, 0.5});
  pending.sent.push_back({message_to(2, 8), 0.5});
  pending.returned->push_back({message_to(2, 8), 0.5});
  pending.works.emplace_back().work.node = NodeId(1);
  pending.notices.push_back({HostId(0), HostId(2), 0.5});
  const std::vector<ChoiceKind> all{ChoiceKind::kFlight,   ChoiceKind::kFlight, ChoiceKind::kSent,
                                    ChoiceKind::kReturned, ChoiceKind::kWork,   ChoiceKind::kLost};
  EXPECT_EQ(kinds_of(choices), all);

  const auto left_while = [&](const auto& disturb) {
    disturb();
    std::vector<ChoiceKind> left = kinds_of(choices);
    EXPECT_TRUE(outages.end());
    EXPECT_EQ(kinds_of(choices), all);
    return left;
  };
  EXPECT_EQ(left_while([&] { outages.stop(HostId(0)); }),
            (std::vector{ChoiceKind::kFlight, ChoiceKind::kFlight, ChoiceKind::kWork}));
  EXPECT_EQ(left_while([&] { outages.cut(HostId(1), HostId(0)); }),
            (std::vector{ChoiceKind::kSent, ChoiceKind::kReturned, ChoiceKind::kWork,
                         ChoiceKind::kLost}));
  EXPECT_EQ(left_while([&] { outages.delay(HostId(0)); }),
            (std::vector{ChoiceKind::kFlight, ChoiceKind::kFlight, ChoiceKind::kWork}));
  EXPECT_EQ(left_while([&] { outages.delay(HostId(1)); }),
            (std::vector{ChoiceKind::kFlight, ChoiceKind::kSent, ChoiceKind::kReturned,
                         ChoiceKind::kWork, ChoiceKind::kLost}));
}

// A worker that knows nothing of others and does one forbidden thing, or none.
class Careless final : public Protocol {
 public:
  enum class Sin : std::uint8_t { kNone, kReleasesTwice, kWritesToParameters, kWritesToLoan };
  Careless(Sin sin, std::span<float> parameters) : sin_(sin), parameters_(parameters) {}

  void handle(const Event& event, Effects& effects) override {
    if (std::holds_alternative<Started>(event)) {
      effects.release(NodeId(0), LayerId(0), 0);
      effects.release(NodeId(0), LayerId(1), 0);
    } else if (const auto* ready = std::get_if<GradientReady>(&event)) {
      effects.release(NodeId(0), ready->layer, ready->iteration + 1);
      if (sin_ == Sin::kReleasesTwice) {
        effects.release(NodeId(0), ready->layer, ready->iteration + 1);
      }
      if (sin_ == Sin::kWritesToParameters && ready->layer == LayerId(1)) {
        parameters_[0] += 1;  // those of the first layer, whose gradient is still to come
      }
      if (sin_ == Sin::kWritesToLoan && ready->layer == LayerId(0)) {
        kept_ = effects.borrow(NodeId(0), {Buffer::kParameters, {0, 3}});
        parameters_[0] += 1;
      }
    }
  }
  BufferRange landing(const Message& /*message*/) const override { return {}; }

 private:
  Sin sin_;
  std::span<float> parameters_;
  Payload kept_;
};

bool runs_with(Careless::Sin sin) {
  const auto learners = testing::toy_learners({3, 4}, 1);
  Job job;
  job.layers = learners.front()->layers();
  const ChunkMap chunks = make_chunks(job.layers, 1, job.strategy);
  Careless node(sin, learners.front()->parameters());
  const VirtualNumbers numbers{
      .learners = learners, .chunks = &chunks, .rule = {}, .strategy = job.strategy};
  return ShuffledWorld(job, {&node}, numbers, 3, 1).run();
}

TEST(ShuffledWorld, NoticesWhatANodeMustNotDo) {
  EXPECT_TRUE(runs_with(Careless::Sin::kNone));
  EXPECT_THROW(runs_with(Careless::Sin::kReleasesTwice), InvariantError);
  EXPECT_THROW(runs_with(Careless::Sin::kWritesToParameters), InvariantError);
  EXPECT_THROW(runs_with(Careless::Sin::kWritesToLoan), InvariantError);
}

}  // namespace
}  // namespace sluice
