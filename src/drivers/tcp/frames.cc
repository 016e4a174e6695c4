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

constexpr std::size_t kNumberBytes = 4;

std::array<std::byte, kNumberBytes> bytes_of(std::size_t number) {
  std::array<std::byte, kNumberBytes> bytes{};
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    bytes[i] = static_cast<std::byte>(number >> (8 * i));
  }
  return bytes;
}

std::uint32_t number_at(std::span<const std::byte> bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    number |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  }
  return number;
}

// Of a frame without its payload, by its first byte; 0: there is no such frame.
std::size_t head_bytes(std::byte kind) {
  switch (static_cast<char>(kind)) {
    case static_cast<char>(kMessageFrame):
    case static_cast<char>(kLongFrame):
      return 1 + kHeaderBytes;
    case static_cast<char>(kFragmentFrame):
      return 1 + kNumberBytes;
    case static_cast<char>(kAcceptedFrame):
      return 1 + kLanes * kNumberBytes;
    case static_cast<char>(kEndFrame):
      return 1;
    default:
      return 0;
  }
}

}  // namespace

FrameWriter::Frame FrameWriter::headed(std::byte kind, std::span<const std::byte> rest) {
  Frame frame{.head_bytes = 1 + rest.size()};
  frame.head[0] = kind;
  std::ranges::copy(rest, frame.head.begin() + 1);
  return frame;
}

void FrameWriter::add(const Message& message, Payload payload) {
  const std::lock_guard lock(mutex_);
  added_.push_back({message, std::move(payload)});
  idle_ = false;
}

void FrameWriter::add_end() {
  const std::lock_guard lock(mutex_);
  end_added_ = true;
  idle_ = false;
}

void FrameWriter::accept(Lane lane) {
  const std::lock_guard lock(mutex_);
  ++accepted_[index_of(lane)];
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
  if (accepted_ != ByLane<std::uint32_t>{}) {
    std::array<std::byte, kLanes * kNumberBytes> counts{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::ranges::copy(bytes_of(std::exchange(accepted_[lane], 0)),
                        counts.begin() + static_cast<std::ptrdiff_t>(lane * kNumberBytes));
    }
    frames_.insert(written_bytes_ == 0 ? frames_.begin() : frames_.begin() + 1,
                   headed(kAcceptedFrame, counts));
  }
  for (Letter& letter : added_) {
    if (lane_of(letter.message) == Lane::kLong) {
      long_.push_back(std::move(letter));
      continue;
    }
    Frame frame = headed(kMessageFrame, encode_header(letter.message));
    frame.message = letter.message;
    frame.payload = std::move(letter.payload);
    frame.body = frame.payload.bytes();
    frames_.push_back(std::move(frame));
  }
  added_.clear();
  cut_fragment();
  if (end_added_ && !ending_ && long_.empty()) {
    ending_ = true;
    frames_.push_back(headed(kEndFrame, {}));
  }
  idle_ = frames_.empty();
}

void FrameWriter::cut_fragment() {
  if (fragment_waits_ || long_.empty()) {
    return;
  }
  const Letter& letter = long_.front();
  const auto rest = letter.payload.bytes().subspan(cut_);
  if (cut_ == 0) {
    frames_.push_back(headed(kLongFrame, encode_header(letter.message)));
  }
  const auto body = rest.first(std::min(rest.size(), kFragmentBytes));
  Frame frame = headed(kFragmentFrame, bytes_of(body.size()));
  frame.payload = letter.payload;
  frame.body = body;
  cut_ += body.size();
  if (body.size() == rest.size()) {
    frame.message = letter.message;
    long_.pop_front();
    cut_ = 0;
  }
  frames_.push_back(std::move(frame));
  fragment_waits_ = true;
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
      for (const auto block : {head, frame.body}) {
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
    fragment_waits_ = fragment_waits_ && frame.head[0] != kFragmentFrame;
    if (frame.message) {
      written_(*frame.message);
    } else if (frame.head[0] == kEndFrame) {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
  }
}

std::span<std::byte> FrameReader::run() const {
  const auto& arriving = arriving_[index_of(coming_)];
  return arriving ? arriving->left.first(run_) : std::span<std::byte>();
}

FrameReader::State FrameReader::read(int socket, Sink& sink) {
  std::memmove(stage_.data(), stage_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  const std::span<std::byte> place = run();
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
  if (placed > 0) {
    advance(placed, sink);
  }
  parse(sink);
  return bytes < place.size() + stage.size() ? State::kDrained : State::kMore;
}

// So many bytes of the payload are in their place.
void FrameReader::advance(std::size_t bytes, Sink& sink) {
  auto& arriving = arriving_[index_of(coming_)];
  arriving->left = arriving->left.subspan(bytes);
  run_ -= bytes;
  if (arriving->left.empty()) {
    const Arriving whole = *std::exchange(arriving, std::nullopt);
    sink.message(whole.message, whole.payload);
  }
}

void FrameReader::parse(Sink& sink) {
  for (bool more = true; more;) {
    if (run_ > 0) {
      const auto here = staged().first(std::min(staged().size(), run_));
      if (here.empty()) {
        return;
      }
      std::ranges::copy(here, run().begin());
      begin_ += here.size();
      advance(here.size(), sink);
    } else {
      more = parse_frame(sink);
    }
  }
}

// False if no whole frame, or no whole head of one, is staged.
bool FrameReader::parse_frame(Sink& sink) {
  if (staged().empty()) {
    return false;
  }
  const std::byte kind = staged()[0];
  const std::size_t size = head_bytes(kind);
  if (size == 0) {
    sink.refuse("it begins with the byte " + std::to_string(std::to_integer<unsigned>(kind)));
  }
  if (staged().size() < size) {
    return false;
  }
  const auto head = staged().first(size).subspan(1);
  begin_ += size;
  if (kind == kEndFrame) {
    sink.ended();
  } else if (kind == kAcceptedFrame) {
    for (const Lane lane : {Lane::kShort, Lane::kLong}) {
      sink.accepted(lane, number_at(head.subspan(index_of(lane) * kNumberBytes)));
    }
  } else if (kind == kFragmentFrame) {
    begin_fragment(number_at(head), sink);
  } else {
    begin_message(kind == kLongFrame ? Lane::kLong : Lane::kShort, head, sink);
  }
  return true;
}

void FrameReader::begin_message(Lane lane, std::span<const std::byte> header, Sink& sink) {
  auto& arriving = arriving_[index_of(lane)];
  if (arriving) {
    sink.refuse("it begins before the one before it has come whole");
  }
  std::span<std::byte> place;
  const Message message = sink.begin(header, place);
  if (lane_of(message) != lane) {
    sink.refuse("of its length, it should " + std::string(lane == Lane::kLong ? "not " : "") +
                "come in fragments");
  }
  const auto size = static_cast<std::size_t>(message.payload_bytes);
  if (size == 0) {
    return sink.message(message, {});
  }
  std::shared_ptr<std::byte[]> fresh;
  if (place.empty()) {
    fresh = std::make_shared_for_overwrite<std::byte[]>(size);
    place = {fresh.get(), size};
  }
  arriving = {message, Payload(std::span<const std::byte>(place), fresh), place};
  if (lane == Lane::kShort) {
    coming_ = lane;
    run_ = size;
  }
}

void FrameReader::begin_fragment(std::size_t bytes, Sink& sink) {
  const auto& arriving = arriving_[index_of(Lane::kLong)];
  if (!arriving || bytes == 0 || bytes > arriving->left.size()) {
    sink.refuse("a fragment of it is longer than what is missing");
  }
  coming_ = Lane::kLong;
  run_ = bytes;
}

}  // namespace sluice
