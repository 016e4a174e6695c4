#include "drivers/tcp/tcp_transport.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

namespace sluice {
namespace {

constexpr std::size_t kHosts = 3;
constexpr std::size_t kMessages = 40;  // from each host to each other one

class AnyMessage final : public MessageRules {
 public:
  Result<void> check(const Message& /*message*/) const override { return {}; }
  Result<void> check_payload(const Message& /*message*/,
                             std::span<const std::byte> /*payload*/) const override {
    return {};
  }
  bool is_once_per_iteration() const override { return true; }
};

// Floats that tell where they come from; some messages have none.
std::vector<float> contents(std::size_t from, std::size_t number) {
  const std::size_t size = number % 5 == 0 ? 0 : 1 + 700 * number;
  return std::vector<float>(size, static_cast<float>(100 * from + number));
}

// One host: sends its messages, counts what comes, and parts when all has come.
class Host final : private Landing {
 public:
  Host(std::size_t rank, int threads, std::vector<Socket> sockets)
      : rank_(rank),
        poller_(threads == 0 ? std::make_shared<Poller>() : nullptr),
        mailbox_(std::make_shared<Mailbox>(poller_)),
        transport_({.topology = topology_,
                    .rules = rules_,
                    .rank = rank,
                    .clock = clock_,
                    .mailbox = mailbox_,
                    .threads = threads,
                    .poller = poller_,
                    .start = start_thread,
                    .grace = from_us(60e6)},
                   std::move(sockets)) {}

  void run() {
    send_all();
    constexpr std::size_t kEach = (kHosts - 1) * kMessages;
    turn_while([&] { return received_ < kEach || sent_ < kEach || returned_ < kEach; });
    EXPECT_FALSE(transport_.is_busy());
    EXPECT_TRUE(transport_.transfers().empty());
    EXPECT_EQ(transport_.count(), (MessageCount{kEach, kEach}));
    part();
  }

  // One host takes no messages, and after some that concern the others this one hears that it is
  // lost.
  void run_without(std::size_t lost) {
    send_all();
    turn_while([&] { return received_ < 3; });
    transport_.lose(lost);
    take_events();
    lost_ = lost;
    turn_while([&] { return received_ < kMessages || sent_to_[2 - rank_] < kMessages; });
    EXPECT_FALSE(transport_.is_busy());
    EXPECT_TRUE(transport_.transfers().empty());
    EXPECT_EQ(transport_.count(), (MessageCount{kMessages, kMessages}));
    part();
  }

 private:
  void send_all() {
    for (std::size_t number = 0; number < kMessages; ++number) {
      for (std::size_t to = 0; to < kHosts; ++to) {
        if (to != rank_) {
          send(to, number);
        }
      }
    }
  }
  void part() {
    transport_.part();
    turn_while([&] { return !transport_.parted(); });
  }
  void send(std::size_t to, std::size_t number) {
    Message message{.wants_return = true,
                    .from = topology_.worker(rank_),
                    .to = topology_.worker(to),
                    .chunk = ChunkId(number)};
    Payload payload = Payload::owning(contents(rank_, number));
    message.payload_bytes = payload.size();
    message.iteration = 1;
    transport_.send(message, std::move(payload));
  }

  template <class Unfinished>
  void turn_while(Unfinished unfinished) {
    while (unfinished()) {
      const bool moved = transport_.progress(*this);
      take_events(moved ? Duration(0) : transport_.patience());
    }
  }
  void take_events(std::optional<Duration> patience = Duration(0)) {
    std::deque<Event> events;
    mailbox_->wait(events, patience);
    for (; !events.empty(); events.pop_front()) {
      handle(events.front());
    }
  }

  void handle(const Event& event) {
    if (const auto* sent = std::get_if<Sent>(&event)) {
      ++sent_;
      ++sent_to_[sent->message.to.index()];
      EXPECT_NE(sent->message.to.index(), lost_) << "nothing follows a loss";
    }
    returned_ += std::holds_alternative<Returned>(event) ? 1U : 0U;
    if (const auto* received = std::get_if<Received>(&event)) {
      const Message& message = received->message;
      const auto values = received->payload.values();
      const std::vector<float> here(values.begin(), values.end());
      EXPECT_EQ(here, contents(message.from.index(), message.chunk.index()));
      EXPECT_EQ(message.chunk.index(), next_[message.from.index()]++) << "they come in order";
      transport_.accepted(message);
      ++received_;
    }
  }

  // Called by threads of the transport.
  std::span<float> place(const Message& message) override {
    if (message.chunk.index() % 2 == 0) {
      return {};
    }
    const std::lock_guard lock(mutex_);
    auto& room = places_[{message.from.index(), message.chunk.index()}];
    room.resize(static_cast<std::size_t>(message.payload_bytes / kFloatBytes));
    return room;
  }

  const Topology topology_{kHosts, 1, 0};
  AnyMessage rules_;
  Clock clock_;
  std::size_t rank_;
  std::size_t received_ = 0;
  std::size_t sent_ = 0;
  std::size_t returned_ = 0;
  std::size_t lost_ = kHosts;                   // none
  std::map<std::size_t, std::size_t> sent_to_;  // by receiver
  std::map<std::size_t, std::size_t> next_;     // by sender: the chunk
  std::mutex mutex_;
  std::map<std::tuple<std::size_t, std::size_t>, std::vector<float>> places_;
  std::shared_ptr<Poller> poller_;
  std::shared_ptr<Mailbox> mailbox_;
  TcpTransport transport_;
};

std::vector<std::vector<Socket>> connected_hosts() {
  std::vector<std::vector<Socket>> sockets(kHosts);
  for (auto& row : sockets) {
    row.resize(kHosts);
  }
  const auto listening = listen_at("127.0.0.1");
  EXPECT_TRUE(listening);
  for (std::size_t a = 0; a < kHosts; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      auto there = connect_to(endpoint_of(*listening), from_us(5e6));
      auto here = accept_at(*listening, from_us(5e6));
      EXPECT_TRUE(there && here);
      put_to_use(*there);
      put_to_use(*here);
      sockets[a][b] = *std::move(there);
      sockets[b][a] = *std::move(here);
    }
  }
  return sockets;
}

class TcpTransportThreadsTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(, TcpTransportThreadsTest, ::testing::Values(0, 1, 2, 3, 4));

TEST_P(TcpTransportThreadsTest, EveryMessageComesOnceAndIsConfirmed) {
  auto sockets = connected_hosts();
  std::vector<std::unique_ptr<Host>> hosts;
  for (std::size_t h = 0; h < kHosts; ++h) {
    hosts.push_back(std::make_unique<Host>(h, GetParam(), std::move(sockets[h])));
  }
  std::vector<std::jthread> loops;
  for (const auto& host : hosts) {
    loops.emplace_back([&host] { host->run(); });
  }
  loops.clear();
}

class TcpLossThreadsTest : public TcpTransportThreadsTest {};
INSTANTIATE_TEST_SUITE_P(, TcpLossThreadsTest, ::testing::Values(0, 1, 4));

TEST_P(TcpLossThreadsTest, TheOthersGoOn) {
  constexpr std::size_t kLost = 1;
  auto sockets = connected_hosts();
  Host first(0, GetParam(), std::move(sockets[0]));
  Host third(2, GetParam(), std::move(sockets[2]));
  std::jthread one([&] { first.run_without(kLost); });
  std::jthread other([&] { third.run_without(kLost); });
  sockets[kLost].clear();  // its kernel closes the connections
}

}  // namespace
}  // namespace sluice
