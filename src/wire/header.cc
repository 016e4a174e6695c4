#include "wire/header.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice {
namespace {

constexpr std::uint32_t kMagic = 0x45434c53;  // "SLCE"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kWantsReturn = 1;

class Writer {
 public:
  template <class T>
  void put(T value) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      header_.at(offset_++) = static_cast<std::byte>(bits >> (8 * i));
    }
  }
  template <class Tag>
  void put(Id<Tag> id) {
    put(static_cast<std::uint32_t>(id.index()));
  }
  const Header& header() const { return header_; }

 private:
  Header header_{};
  std::size_t offset_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bits |= static_cast<std::uint64_t>(bytes_[offset_++]) << (8 * i);
    }
    return static_cast<T>(bits);
  }
  // Reads a field that must be in 0 ... limit. Otherwise records the fault, if it is the first.
  template <class T>
  T take_up_to(T limit, std::string_view field) {
    const std::size_t at = offset_;
    const T value = take<T>();
    if (fault_.empty() && (value < 0 || value > limit)) {
      fault_ =
          fmt::format("message header, offset {}: {} {}, expected 0 ... {}; corrupt in transit", at,
                      field, value, limit);
    }
    return value;
  }
  const std::string& fault() const { return fault_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  std::string fault_;
};

}  // namespace

Header encode_header(const Message& message) {
  Writer writer;
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(static_cast<std::uint8_t>(message.kind));
  writer.put(message.wants_return ? kWantsReturn : std::uint8_t{0});
  writer.put(message.round);
  writer.put(message.priority);
  writer.put(message.from);
  writer.put(message.to);
  writer.put(message.chunk);
  writer.put(message.segment);
  writer.put(message.iteration);
  writer.put(message.payload_bytes);
  writer.put(message.slowest);
  writer.put(std::bit_cast<std::uint64_t>(message.weight));
  return writer.header();
}

Result<Message> decode_header(std::span<const std::byte> bytes) {
  if (bytes.size() != kHeaderBytes) {
    return Error(fmt::format("message header: {} bytes, expected {}", bytes.size(), kHeaderBytes));
  }
  Reader reader(bytes);
  Message message;
  if (const auto magic = reader.take<std::uint32_t>(); magic != kMagic) {
    return Error(fmt::format(
        "message header, offset 0: {:#010x}, expected {:#010x}; the peer does not run Sluice",
        magic, kMagic));
  }
  if (const auto version = reader.take<std::uint8_t>(); version != kVersion) {
    return Error(fmt::format(
        "message header, offset 4: version {}, expected {}; run the same Sluice on all hosts",
        version, kVersion));
  }
  message.kind =
      static_cast<MessageKind>(reader.take_up_to<std::uint8_t>(kMessageKinds - 1, "kind"));
  message.wants_return = reader.take_up_to(kWantsReturn, "flags") == kWantsReturn;
  message.round = reader.take<std::uint16_t>();
  message.priority = reader.take<std::uint32_t>();
  message.from = NodeId(reader.take<std::uint32_t>());
  message.to = NodeId(reader.take<std::uint32_t>());
  message.chunk = ChunkId(reader.take<std::uint32_t>());
  message.segment = reader.take<std::uint32_t>();
  message.iteration = reader.take_up_to(std::numeric_limits<Iteration>::max(), "iteration");
  message.payload_bytes = reader.take_up_to(std::numeric_limits<Bytes>::max(), "payload bytes");
  message.slowest = reader.take_up_to(std::numeric_limits<Iteration>::max(), "slowest");
  message.weight = std::bit_cast<double>(reader.take<std::uint64_t>());
  if (!reader.fault().empty()) {
    return Error(reader.fault());
  }
  if (std::signbit(message.weight) || message.weight > 1 || std::isnan(message.weight)) {
    return Error(
        fmt::format("message header, offset {}: weight {}, expected 0 ... 1; corrupt in transit",
                    kHeaderBytes - sizeof(double), message.weight));
  }
  return message;
}

}  // namespace sluice
