#include "drivers/tcp/mover.h"

#include <algorithm>

namespace sluice {
namespace {

const Duration kMoverNap = from_us(1e5);

}  // namespace

void Mover::add(Peer& peer, bool reads, bool writes) {
  poller_->watch(peer.socket(), seats_.size(), reads, writes);
  seats_.push_back({peer, reads, writes});
}

bool Mover::pass() {
  for (const Poller::Ready& ready : poller_->ready()) {
    Seat& seat = seats_[ready.index];
    seat.readable = seat.readable || (seat.reads && ready.reads);
    seat.writable = seat.writable || (seat.writes && ready.writes);
  }
  bool moved = false;
  for (Seat& seat : seats_) {
    if (seat.readable) {
      seat.readable = seat.peer.read() == FrameReader::State::kMore;
      moved = true;
    }
    if (can_write(seat)) {
      seat.writable = seat.peer.write();
      moved = true;
    }
  }
  return moved;
}

bool Mover::has_work() const {
  return std::ranges::any_of(seats_,
                             [this](const Seat& seat) { return seat.readable || can_write(seat); });
}

void Mover::run(const std::atomic<bool>& stop) {
  while (!stop) {
    if (pass()) {
      continue;
    }
    asleep_ = true;
    if (!has_work() && !stop) {
      poller_->sleep(kMoverNap);
    }
    asleep_ = false;
  }
}

void Mover::wake() {
  if (asleep_.exchange(false)) {
    poller_->wake();
  }
}

}  // namespace sluice
