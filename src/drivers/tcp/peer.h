#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/incoming.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/peer_transport.h"
#include "drivers/tcp/frames.h"
#include "drivers/tcp/socket.h"

namespace sluice {

// What the connections of a process share.
struct PeerWorld {
  const Clock& clock;
  std::shared_ptr<Mailbox> mailbox;
  Incoming& incoming;
  std::atomic<Landing*> landing = nullptr;
  std::atomic<std::int64_t> outgoing = 0;  // messages that have not been confirmed
  std::atomic<bool> lost = false;          // some connection: see Peer::lost_since
};

// The connection with the process of another rank: what is on its way out, and what comes in. One
// thread writes and one reads; both may be the same.
class Peer final : private FrameReader::Sink {
 public:
  Peer(std::size_t rank, Socket socket, PeerWorld& world);

  // Called by the thread that reads, when there is something to write.
  void on_answer(std::function<void()> wake_writer) { wake_writer_ = std::move(wake_writer); }

  std::size_t rank() const { return rank_; }
  int socket() const { return socket_.descriptor(); }

  // From the thread of the host's loop.
  void send(const Message& message, Payload payload);
  void part() { writer_.add_end(); }
  bool parted() const { return ended_ && writer_.has_ended(); }
  // Since when the connection is closed by the other side, which has not parted.
  std::optional<Time> lost_since() const;
  // Nothing is read or written any more, and no event follows.
  void drop();
  bool is_dropped() const { return dropped_; }
  MessageCount count() const { return {sent_, received_}; }
  void list(std::vector<PeerTransport::Transfer>& transfers) const;

  bool wants_to_write() const { return writer_.is_waiting(); }
  // As FrameWriter::write and FrameReader::read.
  bool write();
  FrameReader::State read();

 private:
  Message begin(std::span<const std::byte> header, std::span<std::byte>& place) override;
  void message(const Message& message, const Payload& payload) override;
  void accepted(Lane lane, std::uint32_t messages) override;
  void ended() override { ended_ = true; }
  void refuse(const std::string& why) override;

  void written(const Message& message);
  void confirm(const Message& message);
  void lose();
  bool write_open();
  FrameReader::State read_open();

  std::size_t rank_;
  Socket socket_;
  PeerWorld& world_;
  FrameWriter writer_;
  FrameReader reader_;
  std::function<void()> wake_writer_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> dropped_ = false;
  std::atomic<std::int64_t> sent_ = 0;
  std::atomic<std::int64_t> received_ = 0;
  std::atomic<std::int64_t> unconfirmed_ = 0;  // of those sent
  std::mutex reading_;                         // held meanwhile
  std::mutex writing_;                         // likewise
  mutable std::mutex mutex_;                   // of all below
  // Messages with payloads that are not confirmed yet.
  ByLane<std::deque<PeerTransport::Transfer>> outgoing_;
  ByLane<std::optional<PeerTransport::Transfer>> arriving_;
  std::optional<Time> lost_;
};

}  // namespace sluice
