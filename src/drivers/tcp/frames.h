#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "protocol/payload.h"
#include "wire/header.h"
#include "wire/message.h"

namespace sluice {

// What goes over a connection is a sequence of frames, each of which begins with a byte:
//
//   m  a message: its header, then its payload
//   a  accepted: 4 bytes, little-endian, how many messages with payloads have come whole since the
//      last frame of this kind
//   e  the end: no message follows
inline constexpr std::byte kMessageFrame{'m'};
inline constexpr std::byte kAcceptedFrame{'a'};
inline constexpr std::byte kEndFrame{'e'};
inline constexpr std::size_t kAcceptedBytes = 5;

// The sending end of a connection. Any thread may add frames, one thread writes them.
class FrameWriter {
 public:
  // Called by the thread that writes, when the kernel has a message whole.
  using Written = std::function<void(const Message& message)>;

  explicit FrameWriter(Written written) : written_(std::move(written)) {}

  void add(const Message& message, Payload payload);
  void add_end();
  // A message has come over the same connection. Goes before frames that have not begun.
  void accept();

  // Whether there is anything to write.
  bool is_waiting() const;
  // The end has been written.
  bool has_ended() const;

  // Writes as much as the kernel takes; false if the kernel takes no more for now. Throws
  // std::system_error if the connection has broken.
  bool write(int socket);

 private:
  struct Frame {
    std::array<std::byte, 1 + kHeaderBytes> head{};
    std::size_t head_bytes = 0;
    std::optional<Message> message = std::nullopt;
    Payload payload = {};

    std::size_t size() const { return head_bytes + payload.bytes().size(); }
  };

  void push(Frame frame);
  void take();
  void remove(std::size_t bytes);

  Written written_;
  mutable std::mutex mutex_;  // of what the other threads touch:
  std::deque<Frame> added_;
  std::uint32_t accepted_ = 0;
  bool idle_ = true;
  bool ended_ = false;
  // Of the thread that writes.
  std::deque<Frame> frames_;
  std::size_t written_bytes_ = 0;  // of the first one
};

// The receiving end of a connection, for one thread.
class FrameReader {
 public:
  // What hears of frames. It may throw what is wrong with them.
  class Sink {
   public:
    virtual ~Sink() = default;
    // A header has come: the message, and where its payload goes. Empty: into memory of its own.
    virtual Message begin(std::span<const std::byte> header, std::span<std::byte>& place) = 0;
    virtual void message(const Message& message, const Payload& payload) = 0;
    virtual void accepted(std::uint32_t messages) = 0;
    virtual void ended() = 0;
    virtual void unknown(std::byte kind) = 0;
  };
  enum class State { kMore, kDrained, kClosed };

  // Reads some of what is there: kMore if there may be more, kDrained if not for now, kClosed when
  // the other side has closed the connection. Throws std::system_error if it has broken.
  State read(int socket, Sink& sink);

 private:
  // Most of a payload goes straight to its place; what came along with a header is copied.
  static constexpr std::size_t kStageBytes = 4096;
  struct Arriving {
    Message message;
    Payload payload;
    std::span<std::byte> left;  // of the place, not filled yet
  };

  void parse(Sink& sink);
  bool parse_frame(Sink& sink);
  void begin_message(std::span<const std::byte> header, Sink& sink);
  std::span<const std::byte> staged() const { return {stage_.data() + begin_, end_ - begin_}; }

  std::array<std::byte, kStageBytes> stage_{};
  std::size_t begin_ = 0;  // of what is staged
  std::size_t end_ = 0;
  std::optional<Arriving> arriving_;
};

}  // namespace sluice
