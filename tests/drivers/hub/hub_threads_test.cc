// The hub on one thread, and the processes of a run as threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hub/hub.h"
#include "drivers/hub/hub_connection.h"
#include "drivers/hub/hub_world.h"
#include "drivers/hub/running_hub.h"
#include "drivers/processes/overdue.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using testing::in_worlds;
using testing::kLongEnough;
using testing::RunningHub;

Letters::Letter next(HubConnection& connection, std::uint32_t channel) {
  std::optional<Letters::Letter> letter;
  const bool came = poll_within(kLongEnough, kNap, [&] {
    letter = connection.take(channel);
    return letter.has_value();
  });
  EXPECT_TRUE(came) << connection.fault();
  return letter.value_or(Letters::Letter{99, "nothing came"});
}

TEST(HubThreads, TextsKeepTheirOrderInEachChannel) {
  const RunningHub hub(2);
  const auto sender = hub.connect(0);
  for (int i = 0; i < 100; ++i) {
    sender->send(1, i % 2 == 0 ? 0 : 7, std::to_string(i));
  }
  const auto receiver = hub.connect(1);  // what came before waits for it
  for (int i = 0; i < 100; ++i) {
    const Letters::Letter letter = next(*receiver, i % 2 == 0 ? 0 : 7);
    EXPECT_EQ(letter.from, 0);
    EXPECT_EQ(letter.text, std::to_string(i));
  }
}

// Whatever others send once they know of the loss follows it.
TEST(HubThreads, AllHearOfALossInEveryChannel) {
  RunningHub hub(3);
  const auto first = hub.connect(0);
  const auto second = hub.connect(1);
  {
    const auto lost = hub.connect(2);
    lost->send(0, 5, "the last words");
    EXPECT_EQ(next(*first, 5).text, "the last words");
    hub.end(2);
    EXPECT_EQ(next(*first, 5).text, std::nullopt);
  }
  EXPECT_THAT(first->why_lost(2), HasSubstr("killed"));
  first->send(1, 5, "after it");
  EXPECT_EQ(next(*second, 5).text, std::nullopt);
  EXPECT_EQ(next(*second, 5).text, "after it");
  const Letters::Letter later = next(*second, 6);  // a channel that is opened afterwards
  EXPECT_EQ(later.from, 2);
  EXPECT_EQ(later.text, std::nullopt);
}

TEST(HubThreads, WhoeverLeavesIsNotLost) {
  RunningHub hub(2);
  const auto stays = hub.connect(0);
  hub.connect(1).reset();
  stays->send(0, 0, "itself");
  EXPECT_EQ(next(*stays, 0).text, "itself");
  EXPECT_EQ(stays->why_lost(1), "");
  EXPECT_THAT(hub.happened(), IsEmpty());
}

TEST(HubThreads, StrangersAreTurnedAwayAndTheRunGoesOn) {
  RunningHub hub(2);
  const auto first = hub.connect(0);
  HubAddress guessed = hub.address();
  guessed.token.back() = guessed.token.back() == '0' ? '1' : '0';
  const auto stranger = *HubConnection::open(guessed, 1);
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] { return !stranger->fault().empty(); }));
  const auto second = hub.connect(1);
  second->send(0, 0, "here");
  EXPECT_EQ(next(*first, 0).text, "here");
  EXPECT_THAT(hub.happened(), IsEmpty());
}

// Nobody listens at first: as if the link to the hub were down.
TEST(HubThreads, AProcessWaitsUntilTheHubCanBeReached) {
  const Endpoint endpoint = endpoint_of(*listen_at("127.0.0.1"));
  ASSERT_FALSE(connect_to(endpoint, kLongEnough));
  const std::jthread process([&] { EXPECT_TRUE(HubConnection::open({endpoint, "a token"}, 0)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Socket hub(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(hub.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(hub.descriptor(), 1), 0);
  EXPECT_TRUE(accept_at(hub, kLongEnough));
}

// It takes longer to come than a process may be silent.
TEST(HubThreads, ALongTextIsASignOfLife) {
  RunningHub hub(2);
  const auto first = hub.connect(0);
  first->outlive("1");
  HubLine slow(*connect_to(hub.address().endpoint, kLongEnough));
  slow.add({.kind = HubFrame::Kind::kHello, .rank = 1, .text = hub.address().token});
  EXPECT_TRUE(slow.write());
  const std::string text =
      encode({.kind = HubFrame::Kind::kText, .rank = 0, .text = std::string(400, 'x')});
  for (const char letter : text) {
    EXPECT_EQ(send(slow.descriptor(), &letter, 1, MSG_NOSIGNAL), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(next(*first, 0).text, std::string(400, 'x'));
}

TEST(HubThreads, HeartbeatsComeBack) {
  auto hub = *Hub::open("127.0.0.1", 1);
  const auto process = *HubConnection::open(hub.address(), 0);
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] {
    hub.turn(from_us(1e3));
    return hub.round_trips().count() >= 3;
  }));
}

// It has shown the token, and then nothing.
TEST(HubThreads, SilenceIsALoss) {
  RunningHub hub(2);
  const auto first = hub.connect(0);
  first->outlive("1");
  HubLine silent(*connect_to(hub.address().endpoint, kLongEnough));
  silent.add({.kind = HubFrame::Kind::kHello, .rank = 1, .text = hub.address().token});
  EXPECT_TRUE(silent.write());
  EXPECT_EQ(next(*first, 0).text, std::nullopt);
  EXPECT_THAT(first->why_lost(1), HasSubstr("no sign of life for "));
}

// As one that was stopped: the others do without it, and it cannot go on as if nothing had been.
TEST(HubThreads, WhoContinuesAfterItsLossIsRefused) {
  RunningHub hub(2);
  const auto first = hub.connect(0);
  first->outlive("1");
  HubLine stopped(*connect_to(hub.address().endpoint, kLongEnough));
  stopped.add({.kind = HubFrame::Kind::kHello, .rank = 1, .text = hub.address().token});
  EXPECT_TRUE(stopped.write());
  EXPECT_EQ(next(*first, 0).text, std::nullopt);
  stopped.add({.kind = HubFrame::Kind::kText, .rank = 0, .text = "here I am"});
  stopped.write();
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] { return !stopped.read(); })) << "it is told";
  EXPECT_FALSE(first->take(0)) << "and nobody hears it";
}

// Nothing has come of the process, but the hub was not there to hear it.
TEST(HubThreads, WhoHasStoodStillTakesNobodyForSilent) {
  auto hub = *Hub::open("127.0.0.1", 2);
  const auto first = *HubConnection::open(hub.address(), 0);
  first->outlive("1");
  HubLine silent(*connect_to(hub.address().endpoint, kLongEnough));
  silent.add({.kind = HubFrame::Kind::kHello, .rank = 1, .text = hub.address().token});
  EXPECT_TRUE(silent.write());
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] {
    hub.turn(from_us(1e3));
    return hub.is_outlived(1);
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  EXPECT_TRUE(hub.turn(from_us(1e3)).empty());
}

// ---- a connection between two processes breaks ----

TEST(HubThreads, OneOfTwoThatDoNotReachEachOtherIsLost) {
  RunningHub hub(3);
  const auto first = hub.connect(0);
  first->outlive("1 2");
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] { return first->all_sent(); }));
  const auto second = hub.connect(1);
  const auto third = hub.connect(2);
  second->cut_off(2);
  third->cut_off(1);
  EXPECT_EQ(next(*first, 0).from, 2U);
  EXPECT_EQ(next(*second, 0).from, 2U);
  EXPECT_EQ(first->why_lost(2), "its connection with rank 1 broke, while both reach launch");
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] { return !third->fault().empty(); }));
  EXPECT_THAT(third->fault(), HasSubstr("sluice launch goes on without this process: its conn"));
  second->send(0, 0, "still here");
  EXPECT_EQ(next(*first, 0).text, "still here");
  EXPECT_EQ(hub.happened().size(), 1U);
}

TEST(HubThreads, ABrokenConnectionWithOneThatIsLostIsNothingElse) {
  RunningHub hub(3);
  const auto first = hub.connect(0);
  const auto second = hub.connect(1);
  const auto third = hub.connect(2);
  first->outlive("1 2");
  second->cut_off(2);
  hub.end(2);
  EXPECT_EQ(next(*first, 0).from, 2U);
  EXPECT_EQ(next(*second, 0).from, 2U);
  second->cut_off(2);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(first->why_lost(2), "killed");
  EXPECT_EQ(hub.happened().size(), 1U);
}

// They would end this process if they were more than lines.
TEST(HubThreads, AllEndIfBothAreNeeded) {
  auto hub = *Hub::open("127.0.0.1", 2);
  std::vector<HubLine> lines;
  for (const std::uint32_t rank : {0, 1}) {
    lines.emplace_back(*connect_to(hub.address().endpoint, kLongEnough));
    lines.back().add({.kind = HubFrame::Kind::kHello, .rank = rank, .text = hub.address().token});
  }
  lines[1].add({.kind = HubFrame::Kind::kCutOff, .rank = 0});
  std::vector<Hub::Happening> happened;
  std::size_t ended = 0;
  EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] {
    for (const Hub::Happening& one : hub.turn(from_us(1e3))) {
      happened.push_back(one);
    }
    for (HubLine& line : lines) {
      line.write();
      line.read();
      while (const auto frame = line.frames().next()) {
        ended += frame->kind == HubFrame::Kind::kEnd ? 1 : 0;
      }
    }
    return ended == 2;
  }));
  ASSERT_EQ(happened.size(), 1U);
  EXPECT_EQ(happened[0].code, EXIT_FAILURE);
  EXPECT_EQ(happened[0].rank, 1U);
  EXPECT_EQ(happened[0].cut_off, 0U);
}

TEST(HubThreads, CollectiveCallsDoWhatTheySay) {
  constexpr std::size_t kSize = 4;
  const RunningHub hub(kSize);
  in_worlds(hub, kSize, [](ProcessWorld& world) {
    const std::size_t rank = world.rank();
    world.meet();
    const auto gathered = world.gather(std::string(rank, 'x'), "the test");
    if (rank == 0) {
      EXPECT_THAT(gathered, ElementsAre("", "x", "xx", "xxx"));
    }
    EXPECT_EQ(world.broadcast(rank == 0 ? "from the leader" : "", "the test"), "from the leader");
    EXPECT_EQ(world.scatter({"0", "1", "2", "3"}, "the test"), std::to_string(rank));
    EXPECT_THAT(world.all_gather(std::string(rank, ' ')), ElementsAre("", " ", "  ", "   "));
    EXPECT_THAT(world.machines(), ElementsAre(0, 0, 0, 0));
    std::string bytes = rank == 2 ? "abc" : "...";
    world.broadcast_from(2, std::as_writable_bytes(std::span(bytes)));
    EXPECT_EQ(bytes, "abc");
    EXPECT_GT(world.measure_link().ns_per_byte, 0);
  });
}

template <class T>
void expect_reductions(ProcessWorld& world, NumberType type) {
  const auto own = static_cast<T>(world.rank() + 1);
  const auto reduced = [&](Reduction reduction) {
    std::vector<T> numbers{own, static_cast<T>(2 * own)};
    world.all_reduce({numbers.data(), numbers.size(), type}, reduction);
    return numbers;
  };
  EXPECT_THAT(reduced(Reduction::kSum), ElementsAre(T{6}, T{12}));
  EXPECT_THAT(reduced(Reduction::kMin), ElementsAre(T{1}, T{2}));
  EXPECT_THAT(reduced(Reduction::kMax), ElementsAre(T{3}, T{6}));
  EXPECT_THAT(reduced(Reduction::kProduct), ElementsAre(T{6}, T{48}));
}

TEST(HubThreads, NumbersOfAllTypesAreReduced) {
  constexpr std::size_t kSize = 3;
  const RunningHub hub(kSize);
  in_worlds(hub, kSize, [](ProcessWorld& world) {
    expect_reductions<float>(world, NumberType::kFloat32);
    expect_reductions<double>(world, NumberType::kFloat64);
    expect_reductions<std::int8_t>(world, NumberType::kInt8);
    expect_reductions<std::uint8_t>(world, NumberType::kUint8);
    expect_reductions<std::int16_t>(world, NumberType::kInt16);
    expect_reductions<std::int32_t>(world, NumberType::kInt32);
    expect_reductions<std::int64_t>(world, NumberType::kInt64);
  });
}

TEST(HubThreads, ALostRankThatIsOutlivedHasSentEmptyTexts) {
  constexpr std::size_t kSize = 3;
  RunningHub hub(kSize);
  in_worlds(hub, kSize, [&](ProcessWorld& world) {
    world.outlive([](std::size_t rank) { return rank == 1; });
    if (world.rank() == 1) {
      hub.end(1);
      EXPECT_TRUE(poll_within(kLongEnough, kNap, [&] { return !hub.happened().empty(); }));
      return;
    }
    const auto all = world.all_gather("here");
    EXPECT_THAT(all, ElementsAre("here", "", "here"));
    EXPECT_THAT(world.lost(), ElementsAre(1));
    std::vector<float> numbers{1};
    world.all_reduce({numbers.data(), 1, NumberType::kFloat32}, Reduction::kSum);
    EXPECT_THAT(numbers, ElementsAre(2));
  });
}

TEST(HubJobs, AreFoundInTheEnvironment) {
  const auto found = [](const std::string& hub, const std::string& rank, const std::string& size) {
    return find_hub_job([&](const char* name) -> const char* {
      const std::string_view key = name;
      return key == kHubVariable        ? hub.c_str()
             : key == kHubRankVariable  ? rank.c_str()
             : key == kHubSizeVariable  ? size.c_str()
             : key == kHubTokenVariable ? "token"
                                        : nullptr;
    });
  };
  const auto job = found("10.0.0.1:4711", "2", "3");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->hub.endpoint, (Endpoint{"10.0.0.1", 4711}));
  EXPECT_EQ(job->hub.token, "token");
  EXPECT_EQ(job->rank, 2);
  EXPECT_EQ(job->size, 3);
  EXPECT_FALSE(found("10.0.0.1:4711", "0", "1"));  // alone
  EXPECT_FALSE(found("10.0.0.1:4711", "3", "3"));
  for (const char* nowhere : {"10.0.0.1", "10.0.0.1:", "10.0.0.1:70000", ""}) {
    EXPECT_EQ(found(nowhere, "0", "3")->hub.endpoint.port, 0) << nowhere;
  }
}

}  // namespace
}  // namespace sluice
