#include "drivers/hub/hub_frame.h"

#include <fmt/format.h>

#include <stdexcept>

namespace sluice {
namespace {

constexpr std::size_t kHeadBytes = 1 + 4 + 4 + 8;
constexpr std::string_view kKinds = "htwblkcogrsafeq";

void append_number(std::string& to, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    to.push_back(static_cast<char>(number >> (8 * i) & 0xFFU));
  }
}

std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    number = number << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  return number;
}

}  // namespace

std::string encode(const HubFrame& frame) {
  std::string bytes(1, static_cast<char>(frame.kind));
  append_number(bytes, frame.rank, 4);
  append_number(bytes, frame.channel, 4);
  append_number(bytes, frame.text.size(), 8);
  return bytes + frame.text;
}

std::optional<HubFrame> HubFrameReader::next(std::uint64_t limit) {
  const std::string_view left = std::string_view(bytes_).substr(begin_);
  if (!left.empty() && kKinds.find(left[0]) == std::string_view::npos) {
    throw std::runtime_error(fmt::format("a frame of kind {}", static_cast<int>(left[0])));
  }
  if (left.size() < kHeadBytes) {
    return std::nullopt;
  }
  const std::uint64_t length = number_in(left.substr(9, 8));
  if (length > limit) {
    throw std::runtime_error(fmt::format("a text of {} bytes", length));
  }
  if (left.size() - kHeadBytes < length) {
    return std::nullopt;
  }
  HubFrame frame{.kind = static_cast<HubFrame::Kind>(left[0]),
                 .rank = static_cast<std::uint32_t>(number_in(left.substr(1, 4))),
                 .channel = static_cast<std::uint32_t>(number_in(left.substr(5, 4))),
                 .text = std::string(left.substr(kHeadBytes, length))};
  begin_ += kHeadBytes + length;
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = 0;
  } else if (begin_ > bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace sluice
