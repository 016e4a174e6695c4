#include "drivers/tcp/frames.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

[[noreturn]] void throw_broken() {
  throw std::system_error(errno, std::generic_category(), "the connection has broken");
}

iovec part(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

void FrameWriter::add(const Message& message, Payload payload) {
  Frame frame{.message = message, .payload = std::move(payload)};
  frame.head[0] = kMessageFrame;
  std::ranges::copy(encode_header(message), frame.head.begin() + 1);
  frame.head_bytes = 1 + kHeaderBytes;
  push(std::move(frame));
}

void FrameWriter::add_end() {
  Frame frame{.head_bytes = 1};
  frame.head[0] = kEndFrame;
  push(std::move(frame));
}

void FrameWriter::push(Frame frame) {
  const std::lock_guard lock(mutex_);
  added_.push_back(std::move(frame));
  idle_ = false;
}

void FrameWriter::accept() {
  const std::lock_guard lock(mutex_);
  ++accepted_;
  idle_ = false;
}

bool FrameWriter::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return !idle_;
}

bool FrameWriter::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

// Moves what was added to the frames of this thread.
void FrameWriter::take() {
  const std::lock_guard lock(mutex_);
  if (accepted_ > 0) {
    Frame frame{.head_bytes = kAcceptedBytes};
    frame.head[0] = kAcceptedFrame;
    for (std::size_t i = 0; i < 4; ++i) {
      frame.head[1 + i] = static_cast<std::byte>(accepted_ >> (8 * i));
    }
    frames_.insert(written_bytes_ == 0 ? frames_.begin() : frames_.begin() + 1, std::move(frame));
    accepted_ = 0;
  }
  std::ranges::move(added_, std::back_inserter(frames_));
  added_.clear();
  idle_ = frames_.empty();
}

bool FrameWriter::write(int socket) {
  constexpr std::size_t kParts = 16;
  for (take(); !frames_.empty(); take()) {
    std::array<iovec, kParts> parts{};
    std::size_t used = 0;
    std::size_t bytes = 0;
    std::size_t skip = written_bytes_;
    for (std::size_t f = 0; f < frames_.size() && used + 2 <= kParts; ++f) {
      const Frame& frame = frames_[f];
      const std::span<const std::byte> head(frame.head.data(), frame.head_bytes);
      for (const auto block : {head, frame.payload.bytes()}) {
        const auto rest = block.subspan(std::min(skip, block.size()));
        skip -= block.size() - rest.size();
        if (!rest.empty()) {
          parts[used++] = part(rest);
          bytes += rest.size();
        }
      }
    }
    const msghdr all{.msg_name = nullptr,
                     .msg_namelen = 0,
                     .msg_iov = parts.data(),
                     .msg_iovlen = used,
                     .msg_control = nullptr,
                     .msg_controllen = 0,
                     .msg_flags = 0};
    const ssize_t count = sendmsg(socket, &all, MSG_NOSIGNAL);
    if (count < 0 && !would_block()) {
      throw_broken();
    }
    remove(count < 0 ? 0 : static_cast<std::size_t>(count));
    if (count < 0 || static_cast<std::size_t>(count) < bytes) {
      return false;
    }
  }
  return true;
}

// What the kernel has taken.
void FrameWriter::remove(std::size_t bytes) {
  written_bytes_ += bytes;
  while (!frames_.empty() && written_bytes_ >= frames_.front().size()) {
    const Frame frame = std::move(frames_.front());
    frames_.pop_front();
    written_bytes_ -= frame.size();
    if (frame.message) {
      written_(*frame.message);
    } else if (frame.head[0] == kEndFrame) {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
  }
}

FrameReader::State FrameReader::read(int socket, Sink& sink) {
  std::memmove(stage_.data(), stage_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  const std::span<std::byte> place = arriving_ ? arriving_->left : std::span<std::byte>();
  const std::span<std::byte> stage = std::span(stage_).subspan(end_);
  std::array<iovec, 2> parts{part(place), part(stage)};
  const ssize_t count = readv(socket, parts.data(), static_cast<int>(parts.size()));
  if (count < 0) {
    return would_block() ? State::kDrained : (throw_broken(), State::kClosed);
  }
  if (count == 0) {
    return State::kClosed;
  }
  const auto bytes = static_cast<std::size_t>(count);
  const std::size_t placed = std::min(bytes, place.size());
  end_ += bytes - placed;
  if (arriving_) {
    arriving_->left = place.subspan(placed);
  }
  parse(sink);
  return bytes < place.size() + stage.size() ? State::kDrained : State::kMore;
}

void FrameReader::parse(Sink& sink) {
  for (bool more = true; more;) {
    if (arriving_) {
      auto& left = arriving_->left;
      const auto here = staged().first(std::min(staged().size(), left.size()));
      std::ranges::copy(here, left.begin());
      left = left.subspan(here.size());
      begin_ += here.size();
      if (!left.empty()) {
        return;
      }
      const Arriving whole = *std::exchange(arriving_, std::nullopt);
      sink.message(whole.message, whole.payload);
    }
    more = parse_frame(sink);
  }
}

// False if no whole frame, or no whole header, is staged.
bool FrameReader::parse_frame(Sink& sink) {
  const auto bytes = staged();
  if (bytes.empty()) {
    return false;
  }
  if (bytes[0] == kEndFrame) {
    ++begin_;
    sink.ended();
    return true;
  }
  if (bytes[0] == kAcceptedFrame) {
    if (bytes.size() < kAcceptedBytes) {
      return false;
    }
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      count |= std::to_integer<std::uint32_t>(bytes[1 + i]) << (8 * i);
    }
    begin_ += kAcceptedBytes;
    sink.accepted(count);
    return true;
  }
  if (bytes[0] != kMessageFrame) {
    sink.unknown(bytes[0]);
  }
  if (bytes.size() < 1 + kHeaderBytes) {
    return false;
  }
  begin_ += 1 + kHeaderBytes;
  begin_message(bytes.subspan(1, kHeaderBytes), sink);
  return true;
}

void FrameReader::begin_message(std::span<const std::byte> header, Sink& sink) {
  std::span<std::byte> place;
  const Message message = sink.begin(header, place);
  const auto size = static_cast<std::size_t>(message.payload_bytes);
  if (size == 0) {
    return sink.message(message, {});
  }
  if (!place.empty()) {
    arriving_ = {message, Payload(std::span<const std::byte>(place), nullptr), place};
    return;
  }
  const auto fresh = std::make_shared_for_overwrite<std::byte[]>(size);
  const std::span<std::byte> room(fresh.get(), size);
  arriving_ = {message, Payload(std::span<const std::byte>(room), fresh), room};
}

}  // namespace sluice
