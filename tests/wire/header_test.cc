#include "wire/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Message some_message() {
  Message message;
  message.kind = MessageKind::kGather;
  message.wants_return = true;
  message.round = 0x0102;
  message.priority = 0x03040506;
  message.from = NodeId(0x0708090a);
  message.to = NodeId(0x0b0c0d0e);
  message.chunk = ChunkId(0x0f101112);
  message.iteration = 0x131415161718191a;
  message.segment = 0x2b2c2d2e;
  message.payload_bytes = 0x1b1c1d1e1f202122;
  message.slowest = 0x232425262728292a;
  message.weight = 0.5;
  return message;
}

Message any_message() {
  const auto any32 = [] { return *rc::gen::arbitrary<std::uint32_t>(); };
  const auto any_natural = [] {
    return *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
  };
  Message message;
  message.kind = static_cast<MessageKind>(*rc::gen::inRange(0, kMessageKinds));
  message.wants_return = *rc::gen::arbitrary<bool>();
  message.round = *rc::gen::arbitrary<std::uint16_t>();
  message.priority = any32();
  message.from = NodeId(any32());
  message.to = NodeId(any32());
  message.chunk = ChunkId(any32());
  message.segment = any32();
  message.iteration = any_natural();
  message.payload_bytes = any_natural();
  message.slowest = any_natural();
  message.weight = Random(any32()).uniform();
  return message;
}

// Decoding refuses bytes that do not encode a message, and loses nothing of those that do.
void accept_only_what_encodes_to(std::span<const std::byte> bytes) {
  const Result<Message> message = decode_header(bytes);
  if (message) {
    const Header again = encode_header(*message);
    RC_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  } else {
    RC_ASSERT(!message.error().message().empty());
  }
}

TEST(HeaderTest, HasThisLayout) {
  const std::vector<int> expected{
      'S',  'L',  'C',  'E',                           // magic
      1,    5,    1,                                   // version, kind, flags
      0x02, 0x01,                                      // round
      0x06, 0x05, 0x04, 0x03,                          // priority
      0x0a, 0x09, 0x08, 0x07,                          // from
      0x0e, 0x0d, 0x0c, 0x0b,                          // to
      0x12, 0x11, 0x10, 0x0f,                          // chunk
      0x2e, 0x2d, 0x2c, 0x2b,                          // segment
      0x1a, 0x19, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,  // iteration
      0x22, 0x21, 0x20, 0x1f, 0x1e, 0x1d, 0x1c, 0x1b,  // payload bytes
      0x2a, 0x29, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23,  // slowest
      0,    0,    0,    0,    0,    0,    0xe0, 0x3f,  // weight
  };
  std::vector<int> bytes;
  for (const std::byte b : encode_header(some_message())) {
    bytes.push_back(std::to_integer<int>(b));
  }
  EXPECT_EQ(bytes, expected);
}

TEST(HeaderTest, NamesWhatIsWrongAndWhere) {
  const auto error_with = [](std::size_t offset, int value) {
    Header header = encode_header(some_message());
    header.at(offset) = static_cast<std::byte>(value);
    const Result<Message> message = decode_header(header);
    return message ? "accepted" : message.error().message();
  };
  EXPECT_THAT(error_with(0, 'X'), HasSubstr("offset 0"));
  EXPECT_THAT(error_with(4, 2), HasSubstr("version 2, expected 1"));
  EXPECT_THAT(error_with(5, kMessageKinds), HasSubstr("offset 5: kind 12, expected 0 ... 11"));
  EXPECT_THAT(error_with(6, 2), HasSubstr("offset 6: flags 2"));
  EXPECT_THAT(error_with(36, 0x80), HasSubstr("offset 29: iteration -"));
  EXPECT_THAT(error_with(44, 0x80), HasSubstr("offset 37: payload bytes -"));
  EXPECT_THAT(error_with(52, 0x80), HasSubstr("offset 45: slowest -"));
  EXPECT_THAT(error_with(60, 0xbf), HasSubstr("offset 53: weight -0.5"));
  EXPECT_THAT(error_with(60, 0x7f), HasSubstr("offset 53: weight"));
  EXPECT_EQ(error_with(5, 0), "accepted");
}

TEST(HeaderTest, RefusesAnotherLength) {
  const Header header = encode_header(some_message());
  EXPECT_THAT(decode_header(std::span(header).first(40)).error().message(), HasSubstr("40 bytes"));
  EXPECT_FALSE(decode_header({}));
}

RC_GTEST_PROP(HeaderProperty, EveryMessageSurvivesTheTrip, ()) {
  const Message message = any_message();
  const Result<Message> back = decode_header(encode_header(message));
  RC_ASSERT(static_cast<bool>(back));
  RC_ASSERT(*back == message);
}

RC_GTEST_PROP(HeaderProperty, ArbitraryBytesNeverDoHarm, (const std::vector<std::uint8_t>& bytes)) {
  accept_only_what_encodes_to(std::as_bytes(std::span(bytes)));
}

RC_GTEST_PROP(HeaderProperty, CorruptHeadersNeverDoHarm, ()) {
  Header header = encode_header(any_message());
  const auto damages = *rc::gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    header.at(*rc::gen::inRange<std::size_t>(0, kHeaderBytes)) =
        static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
  }
  accept_only_what_encodes_to(header);
}

}  // namespace
}  // namespace sluice
