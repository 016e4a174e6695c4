#include "drivers/tcp/peer.h"

#include <fmt/format.h>

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
  ++world_.sent;
  ++world_.outgoing;
  if (message.payload_bytes > 0) {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back({message, true, world_.clock.now()});
  }
  writer_.add(message, std::move(payload));
}

bool Peer::awaits_receiver(const Message& message) const {
  return world_.awaits_receivers && message.payload_bytes > 0;
}

// The kernel has copied the payload.
void Peer::written(const Message& message) {
  if (message.wants_return) {
    world_.mailbox->post(Returned{message});
  }
  if (awaits_receiver(message)) {
    return;
  }
  if (message.payload_bytes > 0) {
    const std::lock_guard lock(mutex_);
    outgoing_.pop_front();
  }
  confirm(message);
}

void Peer::accepted(std::uint32_t messages) {
  for (std::uint32_t i = 0; i < messages; ++i) {
    std::optional<Message> first;
    {
      const std::lock_guard lock(mutex_);
      if (!outgoing_.empty()) {
        first = outgoing_.front().message;
        outgoing_.pop_front();
      }
    }
    if (!first) {
      throw BadMessage(rank_, "it accepts more messages than were sent");
    }
    confirm(*first);
  }
}

void Peer::confirm(const Message& message) {
  world_.mailbox->post(Sent{message});
  --world_.outgoing;
}

Message Peer::begin(std::span<const std::byte> header, std::span<std::byte>& place) {
  const Message message = world_.incoming.decode(header, rank_);
  if (message.payload_bytes > 0) {
    place = std::as_writable_bytes(world_.incoming.place(message, *world_.landing));
    const std::lock_guard lock(mutex_);
    arriving_ = {message, false, world_.clock.now()};
  }
  return message;
}

// The event counts as posted before the message counts as received: whoever sees the count sees
// that the host has something to do.
void Peer::message(const Message& message, const Payload& payload) {
  world_.incoming.check_payload(message, payload.bytes());
  if (awaits_receiver(message)) {
    writer_.accept();
    wake_writer_();
  }
  {
    const std::lock_guard lock(mutex_);
    arriving_.reset();
  }
  world_.mailbox->expect();
  ++world_.received;
  world_.mailbox->post_expected(Received{message, payload});
}

void Peer::unknown(std::byte kind) {
  throw BadMessage(rank_,
                   fmt::format("it begins with the byte {}", std::to_integer<unsigned>(kind)));
}

bool Peer::write() {
  try {
    return writer_.write(socket_.descriptor());
  } catch (const std::system_error&) {
    lose();
    return false;
  }
}

FrameReader::State Peer::read() {
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
  transfers.insert(transfers.end(), outgoing_.begin(), outgoing_.end());
  if (arriving_) {
    transfers.push_back(*arriving_);
  }
}

}  // namespace sluice
