// How processes take their seats at the hub, when the run begins and when it goes on.
#include <sys/socket.h>

#include <stdexcept>
#include <utility>

#include "drivers/hub/hub.h"

namespace sluice {
namespace {

using Kind = HubFrame::Kind;

// For who connects to show the token; for how many at a time.
const Duration kGreetingTime = from_us(2e6);
constexpr std::size_t kMaxStrangers = 256;

}  // namespace

void Hub::accept_all() {
  for (;;) {
    Socket socket(accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open()) {
      return;
    }
    if (strangers_.size() < kMaxStrangers) {
      strangers_.push_back({HubLine(std::move(socket)), clock_.now()});
    }
  }
}

void Hub::greet_all() {
  const Time now = clock_.now();
  std::erase_if(strangers_, [&](Stranger& stranger) {
    const bool open = stranger.line.read();
    return greet(stranger.line) || !open || now - stranger.since > kGreetingTime;
  });
}

// True if nothing more is to be expected of it here.
bool Hub::greet(HubLine& line) {
  std::optional<HubFrame> hello;
  try {
    hello = line.frames().next(address_.token.size());
  } catch (const std::runtime_error&) {
    return true;
  }
  if (!hello) {
    return false;
  }
  if (hello->kind != Kind::kHello || hello->text != address_.token ||
      hello->rank >= seats_.size()) {
    return true;
  }
  if (hello->channel == kJoins) {
    greet_joiner(hello->rank, line);
    return true;
  }
  Seat& seat = seats_[hello->rank];
  if (seat.state == State::kLost) {  // it was taken for lost, and is not needed any more
    line.add({.kind = Kind::kLost, .rank = hello->rank, .text = "it was given up"});
    line.write();
    return true;
  }
  if (seat.state == State::kHere) {
    return true;
  }
  seat.line = std::move(line);
  seat.state = State::kHere;
  seat.heard = awake_.now();
  for (const HubFrame& frame : std::exchange(seat.waiting, {})) {
    seat.line.add(frame);
  }
  return true;
}

void Hub::greet_joiner(std::size_t rank, HubLine& line) {
  Seat& seat = seats_[rank];
  if (seat.state != State::kLost || !takes_joiners()) {
    line.add({.kind = Kind::kEnd});
    line.write();
    return;
  }
  seat.line = std::move(line);
  seat.state = State::kKnocking;
  seat.beats.clear();
  let_in_if_all_know(rank);
}

void Hub::let_in_if_all_know(std::size_t rank) {
  Seat& seat = seats_[rank];
  if (seat.state != State::kKnocking || !seat.unaware.empty()) {
    return;
  }
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    const Seat& other = seats_[r];
    if (r != rank && (other.state == State::kLost || other.state == State::kKnocking)) {
      seat.line.add({.kind = Kind::kLost,
                     .rank = static_cast<std::uint32_t>(r),
                     .channel = other.life,
                     .text = other.why});
    }
  }
  seat.line.add({.kind = Kind::kBeginning, .text = *beginning_});
  seat.state = State::kHere;
  seat.heard = awake_.now();
  seat.waits = true;
  ++seat.life;
  happenings_.push_back({.rank = rank, .lost = "", .code = {}, .is_back = true});
}

void Hub::knows_of_all_losses(std::size_t rank) {
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    seats_[r].unaware.erase(rank);
    let_in_if_all_know(r);
  }
}

// One that has been lost meanwhile is not counted in with its next life.
void Hub::count_in(const Lives& joining) {
  for (const auto& [rank, life] : joining) {
    if (rank < seats_.size() && seats_[rank].life == life) {
      seats_[rank].waits = false;
    }
  }
}

}  // namespace sluice
