#include "drivers/hub/hub_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "drivers/hub/hub_connection.h"
#include "drivers/hub/reduce.h"
#include "drivers/processes/letter_numbers.h"
#include "drivers/processes/overdue.h"
#include "drivers/processes/ring_cost.h"
#include "drivers/tcp/exchange.h"
#include "drivers/tcp/mesh.h"

namespace sluice {
namespace {

constexpr std::uint32_t kTextChannel = 0;
const Duration kTurnLimit = from_us(30e6);

class HubLetters final : public Letters {
 public:
  HubLetters(HubConnection& connection, std::uint32_t channel)
      : connection_(connection), channel_(channel) {}

  void send(std::size_t to, std::string text) override {
    connection_.send(to, channel_, std::move(text));
  }
  std::optional<Letter> take() override {
    if (const std::string fault = connection_.fault(); !fault.empty()) {
      throw std::runtime_error(fault);
    }
    return connection_.take(channel_);
  }
  bool all_sent() override { return connection_.all_sent(); }
  void close() override {}

 private:
  HubConnection& connection_;
  const std::uint32_t channel_;
};

// Several texts as one.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += fmt::format("{} ", text.size()) + text;
  }
  return all;
}

std::vector<std::string> split(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t blank = all.find(' ', at);
    const auto length =
        static_cast<std::size_t>(number_of(0, std::string_view(all).substr(at, blank - at)));
    texts.push_back(all.substr(blank + 1, length));
    at = blank + 1 + length;
  }
  return texts;
}

class HubWorld final : public ProcessWorld {
 public:
  HubWorld(std::unique_ptr<HubConnection> connection, const HubJob& job, Warn warn, Fail fail)
      : connection_(std::move(connection)),
        job_(job),
        warn_(std::move(warn)),
        fail_(std::move(fail)),
        texts_(job.size) {}

  std::size_t rank() const override { return job_.rank; }
  std::size_t size() const override { return job_.size; }

  std::vector<std::string> gather(const std::string& text, const std::string& what) override {
    if (rank() != 0) {
      send(0, text);
      return {};
    }
    std::vector<std::string> texts(size());
    texts[0] = text;
    for (std::size_t r = 1; r < size(); ++r) {
      texts[r] = receive(r, what);
    }
    return texts;
  }

  std::string broadcast(const std::string& text, const std::string& what) override {
    if (rank() != 0) {
      return receive(0, what);
    }
    for (std::size_t r = 1; r < size(); ++r) {
      send(r, text);
    }
    return text;
  }

  std::string scatter(const std::vector<std::string>& texts, const std::string& what) override {
    if (rank() != 0) {
      return receive(0, what);
    }
    for (std::size_t r = 1; r < size(); ++r) {
      send(r, texts.at(r));
    }
    return texts.at(0);
  }

  void meet() override {
    gather("", "a sign of life");
    broadcast("", "that all are here");
  }

  LinkCost measure_link() override {
    const auto sockets =
        connect_mesh(rank(), address(), [this](const std::string& own) { return all_gather(own); });
    if (!sockets) {
      throw std::runtime_error("the processes cannot connect over TCP: " +
                               sockets.error().message());
    }
    const Socket& next = sockets->at((rank() + 1) % size());
    const Socket& previous = sockets->at((rank() + size() - 1) % size());
    // An empty message is one byte, since TCP has none.
    const auto turn = [&](std::span<const std::byte> out, std::span<std::byte> in) {
      std::array<std::byte, 1> least{};
      const auto done = out.empty() ? exchange_bytes(next, least, previous, least, kTurnLimit)
                                    : exchange_bytes(next, out, previous, in, kTurnLimit);
      if (!done) {
        throw std::runtime_error("the links cannot be measured: " + done.error().message());
      }
    };
    const auto slowest = [this](double own) {
      all_reduce({&own, 1, NumberType::kFloat64}, Reduction::kMax);
      return own;
    };
    return measure_ring({.turn = turn, .slowest = slowest});
  }

  std::vector<std::size_t> machines() override {
    const std::vector<std::string> names = all_gather(host_name() + " " + boot_id());
    std::vector<std::size_t> first;
    for (const std::string& name : names) {
      const auto found = std::ranges::find(names, name);
      first.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    return first;
  }

  std::string address() const override { return connection_->own_address(); }
  std::optional<LongMessages> long_messages() const override { return std::nullopt; }
  std::unique_ptr<PeerTransport> make_transport(const TransportSpec& /*spec*/) override {
    fail_check("only TCP connections carry messages without MPI");
  }
  std::unique_ptr<Letters> open_letters() override {
    return std::make_unique<HubLetters>(*connection_, ++channels_);
  }

  void outlive(std::function<bool(std::size_t rank)> which) override {
    outlives_ = std::move(which);
    if (rank() == 0) {
      std::vector<std::size_t> ranks;
      for (std::size_t r = 0; r < size(); ++r) {
        if (outlives_(r)) {
          ranks.push_back(r);
        }
      }
      connection_->outlive(fmt::format("{}", fmt::join(ranks, " ")));
    }
  }
  std::vector<std::size_t> lost() const override {
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < size(); ++r) {
      if (!connection_->why_lost(r).empty()) {
        ranks.push_back(r);
      }
    }
    return ranks;
  }

  void all_reduce(const Numbers& numbers, Reduction reduction) override {
    const std::string own(static_cast<const char*>(numbers.data), bytes_of(numbers));
    const std::vector<std::string> all = gather(own, "the numbers of an all-reduce");
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (!all[r].empty() || numbers.count == 0) {
        reduce_into(numbers, all[r], reduction);
      }
    }
    broadcast_from(0, {static_cast<std::byte*>(numbers.data), bytes_of(numbers)});
  }

  void broadcast_from(std::size_t root, std::span<std::byte> bytes) override {
    if (rank() == root) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      for (std::size_t r = 0; r < size(); ++r) {
        if (r != root) {
          send(r, text);
        }
      }
      return;
    }
    const std::string text = receive(root, "a broadcast");
    if (text.size() != bytes.size()) {
      throw std::runtime_error(fmt::format("a broadcast of {} bytes brought {} from rank {}",
                                           bytes.size(), text.size(), root));
    }
    std::memcpy(bytes.data(), text.data(), bytes.size());
  }

  std::vector<std::string> all_gather(const std::string& own) override {
    const std::string all = joined(gather(own, "the texts of an all-gather"));
    return split(broadcast(all, "the texts of an all-gather"));
  }

  // The hub hears of every process all the time, since its connection has a thread of its own.
  void expect_heartbeats() override {}
  void while_waiting(std::function<void()> work) override { while_waiting_ = std::move(work); }
  void beat() override {
    if (const std::string fault = connection_->fault(); !fault.empty()) {
      fail(std::make_exception_ptr(std::runtime_error(fault)));
    }
  }
  void attend(const std::function<void()>& work) override { work(); }

  [[noreturn]] void fail(const std::exception_ptr& why) override {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& error) {
      abort(fail_(rank(), error));
    } catch (...) {
      abort(fail_(rank(), std::runtime_error("an exception that is no std::exception")));
    }
  }

  [[noreturn]] void abort(int code) override {
    connection_->fail(code);
    std::_Exit(code);
  }

 private:
  void send(std::size_t to, const std::string& text) { connection_->send(to, kTextChannel, text); }

  // Nothing if this rank is lost, and the run goes on without it.
  std::string receive(std::size_t from, const std::string& what) {
    const auto overdue = [&] {
      warn_(fmt::format("{} still waits for {} of rank {}", rank_on_host(rank()), what, from));
    };
    const auto here = [&] {
      beat();
      if (while_waiting_) {
        while_waiting_();
      }
      take_texts();
      return !texts_[from].empty() || !connection_->why_lost(from).empty();
    };
    poll_until(here, overdue, while_waiting_ ? std::chrono::microseconds(0) : kNap);
    take_texts();  // what it sent before it was lost
    if (texts_[from].empty()) {
      if (outlives_ && outlives_(from)) {
        return "";
      }
      fail(std::make_exception_ptr(std::runtime_error(
          fmt::format("rank {} was lost: {}", from, connection_->why_lost(from)))));
    }
    std::string text = std::move(texts_[from].front());
    texts_[from].pop_front();
    return text;
  }

  void take_texts() {
    while (auto letter = connection_->take(kTextChannel)) {
      if (letter->text) {
        texts_.at(letter->from).push_back(*std::move(letter->text));
      }
    }
  }

  const std::unique_ptr<HubConnection> connection_;
  const HubJob job_;
  const Warn warn_;
  const Fail fail_;
  std::vector<std::deque<std::string>> texts_;  // by rank, that have come and were not taken
  std::uint32_t channels_ = kTextChannel;
  std::function<bool(std::size_t rank)> outlives_;
  std::function<void()> while_waiting_;
};

}  // namespace

std::optional<HubJob> find_hub_job(const Environment& environment) {
  const auto launch = find_launch(environment);
  const char* const token = environment(kHubTokenVariable);
  if (!launch || launch->pmi != Pmi::kHub || token == nullptr || launch->rank >= launch->size) {
    return std::nullopt;
  }
  const std::string where = environment(kHubVariable);
  const std::size_t colon = std::min(where.find(':'), where.size());
  Endpoint endpoint{where.substr(0, colon), 0};
  std::from_chars(where.data() + std::min(colon + 1, where.size()), where.data() + where.size(),
                  endpoint.port);
  return HubJob{{endpoint, token}, launch->rank, *launch->size};
}

std::optional<HubJob> find_hub_job() {
  return find_hub_job([](const char* name) { return std::getenv(name); });
}

Result<std::unique_ptr<ProcessWorld>> join_hub(const HubJob& job, Warn warn, Fail fail) {
  auto connection = HubConnection::open(job.hub, job.rank);
  if (!connection) {
    return connection.error();
  }
  return std::unique_ptr<ProcessWorld>(
      std::make_unique<HubWorld>(*std::move(connection), job, std::move(warn), std::move(fail)));
}

}  // namespace sluice
