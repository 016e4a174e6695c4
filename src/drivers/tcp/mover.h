#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/tcp/peer.h"
#include "drivers/tcp/poller.h"

namespace sluice {

// Moves the bytes of some connections, one way or both, on one thread.
class Mover {
 public:
  explicit Mover(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}

  // Before the first pass.
  void add(Peer& peer, bool reads, bool writes);

  // Moves what can be moved; true if anything did.
  bool pass();
  // Moves whatever comes until it is asked to stop.
  void run(const std::atomic<bool>& stop);
  // There is something to write, or run() should stop; from any thread.
  void wake();

 private:
  struct Seat {
    Peer& peer;
    bool reads;
    bool writes;
    bool readable = false;
    bool writable = false;
  };

  bool can_write(const Seat& seat) const { return seat.writable && seat.peer.wants_to_write(); }
  bool has_work() const;

  std::shared_ptr<Poller> poller_;
  std::vector<Seat> seats_;
  std::atomic<bool> asleep_ = false;
};

}  // namespace sluice
