// The one that leads the processes at a hub is lost, and the next one leads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hub/hub_admission.h"
#include "drivers/hub/hub_world.h"
#include "drivers/hub/running_hub.h"

namespace sluice {
namespace {

using testing::await;
using ::testing::ElementsAre;
using testing::join_or_fail;
using testing::RunningHub;

std::string joined_texts(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += text.empty() ? "-" : text;
  }
  return all;
}

RC_GTEST_PROP(HubAdmissionProperty, IsWhatWasEncoded, ()) {
  const auto lives = [] {
    return *rc::gen::container<Lives>(rc::gen::inRange<std::size_t>(0, 9999),
                                      rc::gen::arbitrary<std::uint32_t>());
  };
  const HubAdmission admission{
      .joining = lives(), .all = lives(), .channels = *rc::gen::arbitrary<std::uint32_t>()};
  RC_ASSERT(decode_admission(encode(admission)) == admission);
  RC_ASSERT(joining_in(encode(admission)) == admission.joining);
}

// Worlds of one run, each on a thread; they go on without any of them.
class LeaderThreads : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 4;

  std::unique_ptr<ProcessWorld> join(std::size_t rank, bool again = false) const {
    auto world = join_or_fail({hub_.address(), rank, kSize, again});
    world->note_beginning();
    return world;
  }
  static void begin(ProcessWorld& world) {
    world.meet();
    world.outlive([](std::size_t) { return true; });
    world.all_gather("all can go on");
  }
  // When all know of each other that they do, the hub has the beginning.
  static void train(ProcessWorld& world) {
    begin(world);
    world.end_beginning(true);
    world.all_gather("all train");
  }
  void lose(std::size_t rank) {
    hub_.end(rank);
    await([&] {
      for (const auto& happening : hub_.happened()) {
        if (happening.rank == rank && !happening.lost.empty()) {
          return true;
        }
      }
      return false;
    });
  }
  static std::string agree(ProcessWorld& world) {
    return world.agree(
        std::to_string(world.rank()),
        [&](const auto& texts) {
          return std::to_string(world.rank()) + ": " + joined_texts(texts);
        },
        "the test");
  }

  RunningHub hub_{kSize};
};

TEST_F(LeaderThreads, WhatItWasToMakeTheNextOneMakesOfWhatAllSay) {
  std::vector<std::jthread> others;
  for (std::size_t r = 1; r < kSize; ++r) {
    others.emplace_back([&, r] {
      const auto world = join(r);
      train(*world);
      EXPECT_EQ(agree(*world), "1: -123");
      EXPECT_EQ(world->leader(), 1U);
      EXPECT_EQ(world->broadcast(std::to_string(r), "the test"), "1");
      EXPECT_THAT(world->all_gather("here"), ElementsAre("", "here", "here", "here"));
    });
  }
  auto first = join(0);
  train(*first);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // they have told it
  lose(0);
  first.reset();
}

// What it has told one of them, all have heard, however soon it is lost; so has one that is late.
TEST_F(LeaderThreads, EachOfSeveralIsFollowedByTheLowestThatIsLeft) {
  std::array<std::atomic<bool>, kSize> heard{};
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < kSize; ++r) {
    threads.emplace_back([&, r] {
      auto world = join(r);
      train(*world);
      for (std::size_t leader = 0; leader <= r; ++leader) {
        if (leader == 1 && r + 1 == kSize) {
          await([&] { return world->lost().size() == 2; });
        }
        EXPECT_EQ(world->broadcast(std::to_string(r), "the test"), std::to_string(leader));
        heard.at(leader) = heard.at(leader) || leader < r;
      }
      if (r + 1 < kSize) {
        await([&] { return heard.at(r).load(); });
        lose(r);
        world.reset();  // or it ends the process after a while
      }
    });
  }
}

TEST_F(LeaderThreads, WhoComesBackFollowsAlthoughItsRankIsLower) {
  std::vector<std::jthread> others;
  for (std::size_t r = 1; r < kSize; ++r) {
    others.emplace_back([&, r] {
      const auto world = join(r);
      train(*world);
      EXPECT_EQ(agree(*world), "1: -123");
      if (world->leads()) {
        await([&] { return world->has_joiners(); });
      }
      EXPECT_EQ(world->broadcast("for those that count", "the test"), "for those that count");
      EXPECT_THAT(world->let_in(), ElementsAre(0));
      EXPECT_EQ(agree(*world), "1: 0123");
      EXPECT_EQ(world->leader(), 1U);
    });
  }
  auto first = join(0);
  train(*first);
  lose(0);
  first.reset();
  const auto again = join(0, true);
  EXPECT_FALSE(again->leads());
  begin(*again);
  again->await_admission();
  EXPECT_EQ(agree(*again), "1: 0123");
  EXPECT_EQ(again->leader(), 1U);
}

}  // namespace
}  // namespace sluice
