#include "drivers/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "drivers/realtime/loan.h"

namespace sluice {
namespace {

// The loop looks after other things than messages so often.
const Duration kLoopNap = from_us(1e3);
// The loss of a process closes its connections, and is known soon after that.
const Duration kToHearOfALoss = from_us(1e6);

}  // namespace

TcpTransport::TcpTransport(World world, std::vector<Socket> sockets)
    : world_(std::move(world)),
      incoming_(world_.topology, world_.rules, world_.rank),
      shared_{.clock = world_.clock, .mailbox = world_.mailbox, .incoming = incoming_},
      by_rank_(sockets.size()),
      told_(sockets.size()),
      writers_(sockets.size()) {
  check(world_.topology.hosts() == sockets.size(), "every host is a process");
  for (std::size_t r = 0; r < sockets.size(); ++r) {
    if (sockets[r].is_open()) {
      peers_.push_back(std::make_unique<Peer>(r, std::move(sockets[r]), shared_));
      by_rank_[r] = peers_.back().get();
    }
  }
  deal_connections();
}

// What a thread writes and what it reads does not wait for each other, so the first half of the
// threads writes and the other one reads.
void TcpTransport::deal_connections() {
  const auto threads = static_cast<std::size_t>(world_.threads);
  const std::size_t writers = std::max<std::size_t>(1, threads / 2);
  for (std::size_t t = 0; t < std::max<std::size_t>(1, threads); ++t) {
    movers_.push_back(
        std::make_unique<Mover>(threads == 0 ? world_.poller : std::make_shared<Poller>()));
  }
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    Peer& peer = *peers_[p];
    Mover& writer = *movers_[p % writers];
    writer.add(peer, threads < 2, true);
    writers_[peer.rank()] = &writer;
    peer.on_answer([&writer] { writer.wake(); });
    if (threads >= 2) {
      movers_[writers + p % (threads - writers)]->add(peer, true, false);
    }
  }
}

TcpTransport::~TcpTransport() {
  stop_ = true;
  std::ranges::for_each(movers_, [](const auto& mover) { mover->wake(); });
}

// Threads need the loop's landing, so they begin with its first turn.
void TcpTransport::start_threads() {
  for (const auto& mover : movers_) {
    threads_.push_back(world_.start([this, &mover = *mover] {
      try {
        mover.run(stop_);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        world_.mailbox->wake();
      }
    }));
  }
}

void TcpTransport::send(const Message& message, Payload payload) {
  check(message.kind != MessageKind::kAllReduce, "MPI makes sums, not TCP");
  const std::size_t to = world_.topology.host_of(message.to).index();
  if (to == world_.rank) {
    world_.mailbox->post(Received{message, lend(message, std::move(payload), world_.mailbox)});
    return;
  }
  if (by_rank_[to] != nullptr) {  // else this host is about to hear of the loss
    by_rank_[to]->send(message, std::move(payload));
    writers_[to]->wake();
  }
}

// Nothing to do: a peer has confirmed it when it came.
void TcpTransport::accepted(const Message& /*message*/) {}

bool TcpTransport::progress(Landing& landing) {
  const bool first = shared_.landing.exchange(&landing) == nullptr;
  bool moved = false;
  if (world_.threads == 0) {
    moved = movers_.front()->pass();
  } else if (first) {
    start_threads();
  }
  {
    const std::lock_guard lock(mutex_);
    if (error_) {
      std::rethrow_exception(error_);
    }
  }
  look_for_losses();
  return moved;
}

void TcpTransport::look_for_losses() {
  if (!shared_.lost) {
    return;
  }
  for (const auto& peer : peers_) {
    const auto since = peer->lost_since();
    if (!since) {
      continue;
    }
    const Duration ago = world_.clock.now() - *since;
    if (world_.cut_off && ago > kToHearOfALoss && !told_[peer->rank()]) {
      told_[peer->rank()] = true;
      world_.cut_off(peer->rank());
    }
    if (ago > world_.grace) {
      throw std::runtime_error(fmt::format(
          "rank {} has closed its connection: it was killed, or failed; its own messages may say "
          "why",
          peer->rank()));
    }
  }
}

std::optional<Duration> TcpTransport::patience() const {
  return world_.spins && is_busy() ? Duration(0) : kLoopNap;
}

void TcpTransport::part() {
  for (const auto& peer : peers_) {
    peer->part();
    writers_[peer->rank()]->wake();
  }
}

bool TcpTransport::parted() const {
  return std::ranges::all_of(peers_,
                             [](const auto& peer) { return peer->is_dropped() || peer->parted(); });
}

MessageCount TcpTransport::count() const {
  MessageCount all;
  for (const auto& peer : peers_) {
    if (!peer->is_dropped()) {
      const MessageCount one = peer->count();
      all.sent += one.sent;
      all.received += one.received;
    }
  }
  return all;
}

void TcpTransport::lose(std::size_t rank) {
  if (by_rank_[rank] != nullptr) {
    by_rank_[rank]->drop();
  }
}

std::vector<PeerTransport::Transfer> TcpTransport::transfers() const {
  std::vector<Transfer> all;
  for (const auto& peer : peers_) {
    peer->list(all);
  }
  return all;
}

}  // namespace sluice
