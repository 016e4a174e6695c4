#include "drivers/tcp/peer.h"

#include <system_error>
#include <utility>

#include "wire/bad_message.h"

namespace sluice {

Peer::Peer(std::size_t rank, Socket socket, PeerWorld& world)
    : rank_(rank),
      socket_(std::move(socket)),
      world_(world),
      writer_([this](const Message& whole) { written(whole); }) {}

void Peer::send(const Message& message, Payload payload) {
  if (dropped_) {
    return;
  }
  ++sent_;
  ++unconfirmed_;
  ++world_.outgoing;
  if (message.payload_bytes > 0) {
    const std::lock_guard lock(mutex_);
    outgoing_[index_of(lane_of(message))].push_back({message, true, world_.clock.now()});
  }
  writer_.add(message, std::move(payload));
}

// The kernel has copied the payload.
void Peer::written(const Message& message) {
  if (message.wants_return) {
    world_.mailbox->post(Returned{message});
  }
  if (message.payload_bytes == 0) {
    confirm(message);
  }
}

void Peer::accepted(Lane lane, std::uint32_t messages) {
  for (std::uint32_t i = 0; i < messages; ++i) {
    std::optional<Message> first;
    {
      const std::lock_guard lock(mutex_);
      auto& outgoing = outgoing_[index_of(lane)];
      if (!outgoing.empty()) {
        first = outgoing.front().message;
        outgoing.pop_front();
      }
    }
    if (!first) {
      throw BadMessage(rank_, "it accepts more messages than were sent");
    }
    confirm(*first);
  }
}

// Whoever has the event finds that the message is no longer outgoing, and whoever finds that sees
// that the host has something to do.
void Peer::confirm(const Message& message) {
  world_.mailbox->expect();
  --unconfirmed_;
  --world_.outgoing;
  world_.mailbox->post_expected(Sent{message});
}

Message Peer::begin(std::span<const std::byte> header, std::span<std::byte>& place) {
  const Message message = world_.incoming.decode(header, rank_);
  if (message.payload_bytes > 0) {
    place = std::as_writable_bytes(world_.incoming.place(message, *world_.landing));
    const std::lock_guard lock(mutex_);
    arriving_[index_of(lane_of(message))] = {message, false, world_.clock.now()};
  }
  return message;
}

// The event counts as posted before the message counts as received: whoever sees the count sees
// that the host has something to do.
void Peer::message(const Message& message, const Payload& payload) {
  world_.incoming.check_payload(message, payload.bytes());
  if (message.payload_bytes > 0) {
    writer_.accept(lane_of(message));
    wake_writer_();
  }
  {
    const std::lock_guard lock(mutex_);
    arriving_[index_of(lane_of(message))].reset();
  }
  world_.mailbox->expect();
  ++received_;
  world_.mailbox->post_expected(Received{message, payload});
}

void Peer::refuse(const std::string& why) { throw BadMessage(rank_, why); }

bool Peer::write() {
  const std::lock_guard lock(writing_);
  return !dropped_ && write_open();
}

bool Peer::write_open() {
  try {
    return writer_.write(socket_.descriptor());
  } catch (const std::system_error&) {
    lose();
    return false;
  }
}

FrameReader::State Peer::read() {
  const std::lock_guard lock(reading_);
  return dropped_ ? FrameReader::State::kClosed : read_open();
}

FrameReader::State Peer::read_open() {
  auto state = FrameReader::State::kClosed;
  try {
    state = reader_.read(socket_.descriptor(), *this);
  } catch (const std::system_error&) {
  }
  if (state == FrameReader::State::kClosed && !ended_) {
    lose();
  }
  return state;
}

void Peer::drop() {
  const std::scoped_lock moving(reading_, writing_);
  dropped_ = true;
  world_.outgoing -= unconfirmed_.exchange(0);
  const std::lock_guard lock(mutex_);
  outgoing_ = {};
  arriving_ = {};
  lost_.reset();
}

void Peer::lose() {
  const std::lock_guard lock(mutex_);
  lost_ = lost_.value_or(world_.clock.now());
  world_.lost = true;
}

std::optional<Time> Peer::lost_since() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void Peer::list(std::vector<PeerTransport::Transfer>& transfers) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    transfers.insert(transfers.end(), outgoing_[lane].begin(), outgoing_[lane].end());
    if (arriving_[lane]) {
      transfers.push_back(*arriving_[lane]);
    }
  }
}

}  // namespace sluice
