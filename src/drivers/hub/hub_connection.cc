#include "drivers/hub/hub_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "drivers/processes/overdue.h"
#include "drivers/realtime/start_thread.h"

namespace sluice {
namespace {

using HubKind = HubFrame::Kind;

// For a link that is down to come back. The kernel would try again more and more rarely, or give up
// at once.
const Duration kConnectTime = from_us(10e6);
const Duration kConnectTry = from_us(1e6);
const std::chrono::milliseconds kBetweenTries{200};
const Duration kFlushTime = from_us(3e6);
// For the process to end by itself without the hub.
const Duration kToSayWhy = from_us(5e6);
// Beats are due every kHubBeat.
constexpr int kSleepMs = 100;

Result<Socket> connect_patiently(const Endpoint& endpoint) {
  Result<Socket> socket = Error("not tried");
  poll_within(kConnectTime, kBetweenTries, [&] {
    socket = connect_to(endpoint, kConnectTry);
    return static_cast<bool>(socket);
  });
  return socket;
}

std::string end_here_of(const Socket& socket) { return endpoint_of(socket).address; }

}  // namespace

Result<std::unique_ptr<HubConnection>> HubConnection::open(const HubAddress& hub, std::size_t rank,
                                                           bool joins) {
  auto socket = connect_patiently(hub.endpoint);
  if (!socket) {
    return socket.error().within("the hub of sluice launch");
  }
  return std::unique_ptr<HubConnection>(
      new HubConnection(*std::move(socket), rank, hub.token, joins));
}

HubConnection::HubConnection(Socket socket, std::size_t rank, const std::string& token, bool joins)
    : rank_(rank),
      own_address_(end_here_of(socket)),
      awoken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      line_(std::move(socket)) {
  line_.add({.kind = HubKind::kHello,
             .rank = static_cast<std::uint32_t>(rank_),
             .channel = joins ? kJoins : 0,
             .text = token});
  thread_ = start_thread([this] { run(); });
}

HubConnection::~HubConnection() {
  post({.kind = HubKind::kBye});
  flush();
  stop_ = true;
  wake();
  thread_.join();
  ::close(awoken_);
}

std::string HubConnection::own_address() const { return own_address_; }

void HubConnection::run() {
  while (!stop_) {
    {
      const std::lock_guard lock(mutex_);
      serve_line();
    }
    sleep();
  }
}

void HubConnection::sleep() const {
  short events = POLLIN;
  int descriptor = -1;
  {
    const std::lock_guard lock(mutex_);
    descriptor = line_.descriptor();
    events = static_cast<short>(events | (line_.has_more_to_write() ? POLLOUT : 0));
  }
  std::array<pollfd, 2> wanted{pollfd{awoken_, POLLIN, 0}, pollfd{descriptor, events, 0}};
  poll(wanted.data(), wanted.size(), kSleepMs);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(awoken_, &count, sizeof count);
}

void HubConnection::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(awoken_, &one, sizeof one);
}

void HubConnection::serve_line() {
  if (!line_.is_open()) {
    return end_if_forsaken();
  }
  const Time now = clock_.now();
  if (now >= next_beat_) {
    next_beat_ = now + kHubBeat;
    line_.add({.kind = HubKind::kBeat});
  }
  const bool open = line_.read() && line_.write();
  const Time awake = awake_.now();
  if (line_.take_sign()) {
    heard_ = awake;
  }
  try {
    while (const auto frame = line_.frames().next()) {
      take(*frame);
    }
  } catch (const std::runtime_error& error) {
    fault_ = fmt::format("sluice launch has sent {}", error.what());
  }
  if (fault_.empty() && !open) {
    fault_ =
        "the connection with sluice launch was closed: it has ended, or this process was "
        "taken for lost";
  }
  if (fault_.empty() && awake - heard_ > kSilenceAtHub) {
    fault_ = fmt::format(
        "sluice launch has not been heard for {:.0f} s: it was stopped, or the "
        "network to it is cut",
        to_seconds(awake - heard_));
  }
  if (!fault_.empty()) {
    line_.close();
    fault_since_ = now;
  }
}

void HubConnection::end_if_forsaken() const {
  if (fault_since_ && clock_.now() - *fault_since_ > kToSayWhy) {
    fmt::print(stderr, "sluice: rank {}: {}\n", rank_, fault_);
    std::_Exit(EXIT_FAILURE);
  }
}

void HubConnection::take(const HubFrame& frame) {
  switch (frame.kind) {
    case HubKind::kText:
      channel(frame.channel).push_back({frame.rank, frame.text});
      return;
    case HubKind::kLost:
      if (frame.rank == rank_) {
        fault_ = "sluice launch goes on without this process: " + frame.text;
        return;
      }
      for (auto& [number, letters] : channels_) {
        letters.push_back({frame.rank, std::nullopt});
      }
      lost_[frame.rank] = {frame.channel, frame.text};
      losses_.emplace_back(clock_.now(), PeerLoss{frame.rank, frame.channel, {}, frame.text});
      joiners_.erase(frame.rank);
      line_.add({.kind = HubKind::kHeard, .rank = frame.rank, .channel = frame.channel});
      return;
    case HubKind::kReady:
      joiners_[frame.rank] = frame.channel;
      return;
    case HubKind::kBeginning:
      beginning_ = frame.text;
      return;
    case HubKind::kSignal:
      kill(getpid(), static_cast<int>(frame.rank));
      return;
    case HubKind::kEnd:
      std::_Exit(static_cast<int>(frame.rank));
    case HubKind::kBeat:
      line_.add(frame);
      return;
    default:
      throw std::runtime_error("what only the hub takes");
  }
}

std::deque<Letters::Letter>& HubConnection::channel(std::uint32_t number) {
  const auto [found, is_new] = channels_.try_emplace(number);
  if (is_new) {
    for (const auto& [rank, loss] : lost_) {
      if (is_lost(rank)) {
        found->second.push_back({rank, std::nullopt});
      }
    }
  }
  return found->second;
}

void HubConnection::post(const HubFrame& frame) {
  {
    const std::lock_guard lock(mutex_);
    line_.add(frame);
  }
  wake();
}

void HubConnection::send(std::size_t to, std::uint32_t channel, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost(to)) {  // after kHeard it could reach the next life
      return;
    }
    line_.add({.kind = HubKind::kText,
               .rank = static_cast<std::uint32_t>(to),
               .channel = channel,
               .text = std::move(text)});
  }
  wake();
}

void HubConnection::send_to_all(std::uint32_t channel, const std::string& text) {
  post({.kind = HubKind::kToAll, .channel = channel, .text = text});
}

void HubConnection::send_admission(std::uint32_t channel, const std::string& text) {
  post({.kind = HubKind::kAdmit, .channel = channel, .text = text});
}

std::optional<Letters::Letter> HubConnection::take(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  auto& letters = channel(number);
  if (letters.empty()) {
    return std::nullopt;
  }
  Letters::Letter first = std::move(letters.front());
  letters.pop_front();
  return first;
}

bool HubConnection::all_sent() const {
  const std::lock_guard lock(mutex_);
  return !line_.has_more_to_write();
}

std::string HubConnection::why_lost(std::size_t rank) const {
  const std::lock_guard lock(mutex_);
  return is_lost(rank) ? lost_.at(rank).why : "";
}

std::vector<PeerLoss> HubConnection::losses() const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerLoss> all;
  for (const auto& [at, loss] : losses_) {
    all.push_back(loss);
    all.back().ago = clock_.now() - at;
  }
  return all;
}

bool HubConnection::is_lost(std::size_t rank) const {
  const auto loss = lost_.find(rank);
  const auto life = lives_.find(rank);
  return loss != lost_.end() && (life == lives_.end() || loss->second.life >= life->second);
}

std::string HubConnection::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

// Its connection has broken because it was lost, if that is known.
void HubConnection::cut_off(std::size_t rank) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost(rank)) {
      return;
    }
    line_.add({.kind = HubKind::kCutOff, .rank = static_cast<std::uint32_t>(rank)});
  }
  wake();
}

void HubConnection::outlive(const std::string& ranks) {
  post({.kind = HubKind::kOutlive, .text = ranks});
}

void HubConnection::tell_joiners(const std::string& beginning) {
  post({.kind = HubKind::kBeginning, .text = beginning});
}

std::optional<std::string> HubConnection::beginning() const {
  const std::lock_guard lock(mutex_);
  return beginning_;
}

void HubConnection::ready() { post({.kind = HubKind::kReady}); }

Lives HubConnection::joiners() const {
  const std::lock_guard lock(mutex_);
  return joiners_;
}

// A channel of the next phase may be there already, with the loss in it.
void HubConnection::admit(std::size_t rank, std::uint32_t life) {
  const std::lock_guard lock(mutex_);
  lives_[rank] = life;
  joiners_.erase(rank);
  for (auto& [number, letters] : channels_) {
    std::erase_if(letters,
                  [&](const Letters::Letter& one) { return one.from == rank && !one.text; });
    if (is_lost(rank)) {
      letters.push_back({rank, std::nullopt});
    }
  }
}

void HubConnection::fail(int code) {
  post({.kind = HubKind::kFail, .rank = static_cast<std::uint32_t>(code)});
  flush();
}

void HubConnection::flush() const {
  poll_within(kFlushTime, kNap, [&] { return all_sent() || !fault().empty(); });
}

}  // namespace sluice
