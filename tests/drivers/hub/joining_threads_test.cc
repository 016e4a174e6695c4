// A rank that was lost comes back. The hub runs on one thread, and the processes are threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "drivers/hub/hub.h"
#include "drivers/hub/hub_connection.h"
#include "drivers/hub/hub_world.h"
#include "drivers/hub/running_hub.h"
#include "drivers/processes/overdue.h"

namespace sluice {
namespace {

using testing::await;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::join_or_fail;
using testing::kLongEnough;
using ::testing::Pair;
using testing::RunningHub;

// Ranks 0 and 1 of three, after rank 2 was lost.
class JoiningThreads : public ::testing::Test {
 protected:
  JoiningThreads() {
    first_->outlive("1 2");
    first_->tell_joiners("how it began");
    await([&] { return first_->all_sent(); });
    lose(2);
    third_.reset();  // or it ends the process after a while
  }

  void lose(std::size_t rank) {
    hub_.end(rank);
    await([&] { return !first_->why_lost(rank).empty() && !second_->why_lost(rank).empty(); });
  }
  std::unique_ptr<HubConnection> come_back() const {
    auto connection = *HubConnection::open(hub_.address(), 2, true);
    await([&] { return connection->beginning().has_value(); });
    return connection;
  }

  RunningHub hub_{3};
  std::unique_ptr<HubConnection> first_ = hub_.connect(0);
  std::unique_ptr<HubConnection> second_ = hub_.connect(1);
  std::unique_ptr<HubConnection> third_ = hub_.connect(2);
};

TEST_F(JoiningThreads, WhoComesBackHearsTheBeginningAndCountsWhenAllHaveLetItIn) {
  const auto again = come_back();
  EXPECT_EQ(again->beginning(), "how it began");
  EXPECT_THAT(first_->joiners(), IsEmpty()) << "it is not ready";
  again->ready();
  await([&] { return !first_->joiners().empty(); });
  EXPECT_THAT(first_->joiners(), ElementsAre(Pair(2, 1)));
  EXPECT_NE(first_->why_lost(2), "");
  for (HubConnection* const one : {first_.get(), second_.get()}) {
    one->admit(2, 1);
    EXPECT_EQ(one->why_lost(2), "");
    EXPECT_FALSE(one->take(7)) << "in the next phase nobody is lost";
  }
  EXPECT_THAT(first_->joiners(), IsEmpty());
  first_->send(2, 7, "welcome");
  again->send(1, 7, "thanks");
  await([&] { return again->take(7).has_value(); });
  await([&] { return second_->take(7).has_value(); });
}

TEST_F(JoiningThreads, WhoComesBackGetsNothingThatWasSentBeforeItIsLetIn) {
  const auto again = come_back();
  first_->send(2, 7, "for its predecessor");
  first_->admit(2, 1);
  first_->send(2, 7, "welcome");
  std::optional<Letters::Letter> letter;
  await([&] { return (letter = again->take(7)).has_value(); });
  EXPECT_EQ(letter->text, "welcome");
}

TEST_F(JoiningThreads, OneThatIsLostAgainStaysLostHoweverLateItIsLetIn) {
  auto again = come_back();
  again->ready();
  await([&] { return !first_->joiners().empty(); });
  first_->admit(2, 1);
  hub_.end(2);
  await([&] { return !first_->why_lost(2).empty(); });
  again.reset();
  second_->take(7);
  second_->admit(2, 1);
  await([&] { return !second_->why_lost(2).empty(); });
  await([&] {
    const auto letter = second_->take(7);
    return letter && letter->from == 2 && !letter->text;
  });
  again = come_back();
  again->ready();
  await([&] { return !first_->joiners().empty(); });
  EXPECT_THAT(first_->joiners(), ElementsAre(Pair(2, 2)));
}

TEST_F(JoiningThreads, OneThatIsNotReadyAnyMoreIsForgotten) {
  const auto again = come_back();
  again->ready();
  await([&] { return !first_->joiners().empty(); });
  hub_.end(2);
  await([&] { return first_->joiners().empty(); });
}

TEST_F(JoiningThreads, WhoComesBackKnowsWhoElseIsLost) {
  hub_.end(1);
  await([&] { return !first_->why_lost(1).empty(); });
  EXPECT_NE(come_back()->why_lost(1), "");
}

// One end of a connection whose process does only what it is told to.
struct Puppet {
  Puppet(const HubAddress& hub, std::uint32_t rank, std::uint32_t channel = 0)
      : line(*connect_to(hub.endpoint, kLongEnough)) {
    say({.kind = HubFrame::Kind::kHello, .rank = rank, .channel = channel, .text = hub.token});
  }
  void say(const HubFrame& frame) {
    line.add(frame);
    EXPECT_TRUE(line.write());
  }
  bool has_heard(HubFrame::Kind kind) {
    line.read();
    bool found = false;
    while (const auto frame = line.frames().next()) {
      found = found || frame->kind == kind;
    }
    return found;
  }

  HubLine line;
};

// Else it would get what the others send its predecessor.
TEST(JoiningHubThreads, NobodyComesBackBeforeAllKnowOfTheLoss) {
  using Kind = HubFrame::Kind;
  Hub hub = *Hub::open("127.0.0.1", 3);
  const auto turn_until = [&](const std::function<bool()>& done) {
    await([&] {
      hub.turn(from_us(1e3));
      return done();
    });
  };
  Puppet first(hub.address(), 0);
  first.say({.kind = Kind::kBeginning, .text = "how it began"});
  Puppet second(hub.address(), 1);
  const Puppet third(hub.address(), 2);
  turn_until([&] { return hub.takes_joiners() && second.has_heard(Kind::kBeat); });
  hub.ended(2, false, "killed");
  turn_until([&] { return second.has_heard(Kind::kLost); });
  Puppet again(hub.address(), 2, kJoins);
  first.say({.kind = Kind::kHeard, .rank = 2});
  for (int i = 0; i < 50; ++i) {
    hub.turn(from_us(2e3));
    EXPECT_FALSE(again.has_heard(Kind::kBeginning));
  }
  second.say({.kind = Kind::kText, .rank = 2, .text = "for its predecessor"});
  second.say({.kind = Kind::kHeard, .rank = 2});
  turn_until([&] { return again.has_heard(Kind::kBeginning); });
  for (int i = 0; i < 10; ++i) {
    hub.turn(from_us(2e3));
    EXPECT_FALSE(again.has_heard(Kind::kText));
  }
  again.say({.kind = Kind::kReady});
  turn_until([&] { return first.has_heard(Kind::kReady); });
  first.say({.kind = Kind::kBye});
  turn_until([&] { return again.has_heard(Kind::kEnd); });
  again.line.close();
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(hub.turn(from_us(2e3)), IsEmpty()) << "who is sent home is not lost";
  }
  EXPECT_THAT(hub.ended(2, true, ""), IsEmpty());
}

// A run of three worlds, each on a thread.
class JoiningWorldsThreads : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 3;

  std::unique_ptr<ProcessWorld> join(std::size_t rank, bool again) const {
    auto world = join_or_fail({hub_.address(), rank, kSize, again});
    world->note_beginning();
    return world;
  }

  // What this process hears before training begins.
  static std::string begin(ProcessWorld& world) {
    std::string heard = world.broadcast(world.rank() == 0 ? "settings" : "", "the settings");
    world.meet();
    heard += std::to_string(world.machines().size());
    world.gather(std::to_string(world.rank()), "the check-in");
    double speed = world.rank() == 1 ? 3 : 1;
    world.all_reduce({&speed, 1, NumberType::kFloat64}, Reduction::kMax);
    heard += " " + std::to_string(speed) + " " + std::to_string(world.measure_link().ns_per_byte);
    world.outlive([](std::size_t other) { return other > 0; });
    return heard;
  }

  // All are there, and rank 1 tells rank 2 something.
  void take_part(ProcessWorld& world) {
    EXPECT_THAT(world.lost(), IsEmpty());
    EXPECT_THAT(world.all_gather("here"), ElementsAre("here", "here", "here"));
    if (world.rank() == 1) {
      world.send_text(2, "my state");
    } else if (world.rank() == 2) {
      EXPECT_EQ(world.receive_text(1, "the state"), "my state");
    }
    ++took_part_;
  }

  // Lets in this rank once it is lost and there again.
  static void let_in(ProcessWorld& world, std::size_t rank) {
    await([&] { return !world.lost().empty(); });
    EXPECT_EQ(world.all_gather("here").at(rank), "");
    if (world.rank() == 0) {
      await([&] { return world.has_joiners(); });
    }
    EXPECT_THAT(world.let_in(), ElementsAre(rank));
  }

  // The process of this rank ends, and the hub hears of it.
  void lose(std::size_t rank) {
    hub_.end(rank);
    await([&] {
      const auto happened = hub_.happened();
      return std::ranges::any_of(
          happened, [&](const auto& one) { return one.rank == rank && !one.lost.empty(); });
    });
  }

  RunningHub hub_{kSize};
  std::atomic<std::size_t> took_part_ = 0;
  std::atomic<bool> first_is_lost_ = false;
};

// Rank 2 is lost and comes back; then rank 1, which hears of rank 2 what a donor tells.
TEST_F(JoiningWorldsThreads, WhoComesBackRelivesTheBeginningAndThenTakesPart) {
  std::string first_heard;
  std::string heard_again;
  std::jthread leader([&] {
    const auto world = join(0, false);
    first_heard = begin(*world);
    world->end_beginning(true);
    let_in(*world, 2);
    take_part(*world);
    await([&] { return took_part_ == kSize; });
    lose(1);
    first_is_lost_ = true;
    let_in(*world, 1);
  });
  std::jthread second([&] {
    auto world = join(1, false);
    begin(*world);
    world->end_beginning(true);
    let_in(*world, 2);
    take_part(*world);
    await([&] { return first_is_lost_.load(); });
    world.reset();
    const auto again = join(1, true);
    begin(*again);
    // All that follows its admission has come before it sees that.
    again->while_waiting([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
    again->await_admission();
    EXPECT_EQ(again->receive_text(2, "the state"), "the state of one that came back, too");
  });
  std::jthread third([&] {
    auto before = join(2, false);
    begin(*before);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lose(2);
    before.reset();  // or it ends the process after a while
    const auto world = join(2, true);
    heard_again = begin(*world);
    world->await_admission();
    take_part(*world);
    let_in(*world, 1);
    world->send_text(1, "the state of one that came back, too");
  });
  leader.join();
  second.join();
  third.join();
  EXPECT_EQ(heard_again, first_heard);
}

}  // namespace
}  // namespace sluice
