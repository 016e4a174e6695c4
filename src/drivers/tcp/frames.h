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
#include <string>
#include <vector>

#include "protocol/payload.h"
#include "wire/header.h"
#include "wire/message.h"

namespace sluice {

// What goes over a connection is a sequence of frames, each of which begins with a byte:
//
//   m  a message: its header, then its payload
//   l  a long message: its header; the payload follows in fragments, and other messages may pass
//      between them
//   f  a fragment of the long message that has begun: 4 bytes, its length, then so many bytes
//   a  accepted: twice 4 bytes, how many messages with payloads have come whole since the last
//   frame
//      of this kind, those that are not long and those that are
//   e  the end: nothing follows
//
// Numbers are little-endian. Long messages keep their order, and so do the others.
inline constexpr std::byte kMessageFrame{'m'};
inline constexpr std::byte kLongFrame{'l'};
inline constexpr std::byte kFragmentFrame{'f'};
inline constexpr std::byte kAcceptedFrame{'a'};
inline constexpr std::byte kEndFrame{'e'};

// At 1 Gb/s a fragment takes 2 ms.
inline constexpr std::size_t kFragmentBytes = std::size_t{1} << 18;

// The order that a message keeps.
enum class Lane : std::uint8_t { kShort, kLong };
inline constexpr std::size_t kLanes = 2;
template <class T>
using ByLane = std::array<T, kLanes>;

constexpr Lane lane_of(const Message& message) {
  return message.payload_bytes > static_cast<Bytes>(kFragmentBytes) ? Lane::kLong : Lane::kShort;
}
constexpr std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

// The sending end of a connection. Any thread may add frames, one thread writes them.
class FrameWriter {
 public:
  // Called by the thread that writes, when the kernel has a message whole.
  using Written = std::function<void(const Message& message)>;

  explicit FrameWriter(Written written) : written_(std::move(written)) {}

  void add(const Message& message, Payload payload);
  void add_end();
  // A message has come over the same connection. Goes before frames that have not begun.
  void accept(Lane lane);

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
    std::optional<Message> message = std::nullopt;  // that is whole with this frame
    Payload payload = {};
    std::span<const std::byte> body = {};  // of the payload

    std::size_t size() const { return head_bytes + body.size(); }
  };
  struct Letter {
    Message message;
    Payload payload;
  };

  static Frame headed(std::byte kind, std::span<const std::byte> rest);
  void take();
  // Cuts the next fragment of the long messages.
  void cut_fragment();
  void remove(std::size_t bytes);

  Written written_;
  mutable std::mutex mutex_;  // of what the other threads touch:
  std::vector<Letter> added_;
  bool end_added_ = false;
  ByLane<std::uint32_t> accepted_{};
  bool idle_ = true;
  bool ended_ = false;
  // Of the thread that writes.
  std::deque<Frame> frames_;       // at most one of them is a fragment
  std::size_t written_bytes_ = 0;  // of the first one
  std::deque<Letter> long_;
  std::size_t cut_ = 0;  // of the first long one: bytes in fragments so far
  bool fragment_waits_ = false;
  bool ending_ = false;
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
    virtual void accepted(Lane lane, std::uint32_t messages) = 0;
    virtual void ended() = 0;
    // Must throw.
    virtual void refuse(const std::string& why) = 0;
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
  void begin_message(Lane lane, std::span<const std::byte> header, Sink& sink);
  void begin_fragment(std::size_t bytes, Sink& sink);
  void advance(std::size_t bytes, Sink& sink);
  // Of the payload that comes now.
  std::span<std::byte> run() const;
  std::span<const std::byte> staged() const { return {stage_.data() + begin_, end_ - begin_}; }

  std::array<std::byte, kStageBytes> stage_{};
  std::size_t begin_ = 0;  // of what is staged
  std::size_t end_ = 0;
  ByLane<std::optional<Arriving>> arriving_;
  Lane coming_ = Lane::kShort;  // whose bytes come now
  std::size_t run_ = 0;         // how many of them do before the next frame
};

}  // namespace sluice
