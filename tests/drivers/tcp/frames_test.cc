#include "drivers/tcp/frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "drivers/tcp/socket.h"

namespace sluice {
namespace {

// Two ends that take few bytes at a time.
std::pair<Socket, Socket> connected_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const int small = 2048;
  setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  return {Socket(ends[0]), Socket(ends[1])};
}

struct Letter {
  Message message;
  std::vector<std::byte> payload;

  bool operator==(const Letter&) const = default;
};

class Heard final : public FrameReader::Sink {
 public:
  // Every other payload has a place.
  Message begin(std::span<const std::byte> header, std::span<std::byte>& place) override {
    const auto decoded = decode_header(header);
    if (!decoded) {
      throw std::runtime_error(decoded.error().message());
    }
    auto& room = places_[index_of(lane_of(*decoded))];
    room.assign(static_cast<std::size_t>(decoded->payload_bytes), std::byte{0});
    if (messages.size() % 2 == 0) {
      place = room;
    }
    return *decoded;
  }
  void message(const Message& message, const Payload& payload) override {
    messages.push_back({message, {payload.bytes().begin(), payload.bytes().end()}});
  }
  void accepted(Lane lane, std::uint32_t count) override { acceptances[index_of(lane)] += count; }
  void ended() override { has_ended = true; }
  void refuse(const std::string& why) override { throw std::runtime_error(why); }

  std::vector<Letter> messages;
  ByLane<std::uint32_t> acceptances{};
  bool has_ended = false;

 private:
  ByLane<std::vector<std::byte>> places_;
};

std::vector<Letter> in_lane(Lane lane, const std::vector<Letter>& letters) {
  std::vector<Letter> found;
  std::ranges::copy_if(letters, std::back_inserter(found),
                       [&](const Letter& letter) { return lane_of(letter.message) == lane; });
  return found;
}

Letter any_message(std::size_t index) {
  const auto size = *rc::gen::weightedOneOf<std::size_t>(
      {{1, rc::gen::just<std::size_t>(0)},
       {4, rc::gen::inRange<std::size_t>(1, 200)},
       {2, rc::gen::inRange<std::size_t>(3900, 4200)},
       {1, rc::gen::inRange<std::size_t>(8000, 60'000)},
       {1, rc::gen::inRange<std::size_t>(kFragmentBytes - 1, kFragmentBytes + 3)},
       {1, rc::gen::inRange<std::size_t>(kFragmentBytes, 3 * kFragmentBytes)}});
  Letter sent{.message = {.from = NodeId(0), .to = NodeId(1), .chunk = ChunkId(index)},
              .payload = std::vector<std::byte>(size)};
  sent.message.payload_bytes = static_cast<Bytes>(size);
  for (std::size_t i = 0; i < size; ++i) {
    sent.payload[i] = static_cast<std::byte>(index + 7 * i);
  }
  return sent;
}

// However the kernel cuts the bytes, and whoever is faster, what arrives is what was sent, and in
// the order of each lane.
RC_GTEST_PROP(FramesTest, WhatArrivesIsWhatWasSent, ()) {
  const auto ends = connected_ends();
  std::vector<Message> written;
  FrameWriter writer([&](const Message& message) { written.push_back(message); });
  FrameReader reader;
  Heard heard;
  std::vector<Letter> sent;
  ByLane<std::uint32_t> accepted{};
  const auto steps = *rc::gen::inRange(1, 40);
  const auto step = [&](int what) {
    if (what == 0) {
      sent.push_back(any_message(sent.size()));
      writer.add(sent.back().message, Payload::owning(std::vector(sent.back().payload)));
    } else if (what == 1) {
      const Lane lane = *rc::gen::element(Lane::kShort, Lane::kLong);
      writer.accept(lane);
      ++accepted[index_of(lane)];
    } else if (what == 2) {
      writer.write(ends.first.descriptor());
    } else {
      reader.read(ends.second.descriptor(), heard);
    }
  };
  for (int s = 0; s < steps; ++s) {
    step(*rc::gen::inRange(0, 4));
  }
  writer.add_end();
  for (int turns = 0; !heard.has_ended; ++turns) {
    RC_ASSERT(turns < 10'000);
    step(2);
    step(3);
  }
  RC_ASSERT(in_lane(Lane::kShort, heard.messages) == in_lane(Lane::kShort, sent));
  RC_ASSERT(in_lane(Lane::kLong, heard.messages) == in_lane(Lane::kLong, sent));
  RC_ASSERT(heard.messages.size() == sent.size());
  RC_ASSERT(heard.acceptances == accepted);
  RC_ASSERT(writer.has_ended());
  RC_ASSERT(!writer.is_waiting());
  RC_ASSERT(written.size() == sent.size());
}

// Acceptances must not wait behind long messages that have not begun.
TEST(FramesTest, AnAcceptanceGoesBeforeMessagesThatHaveNotBegun) {
  const auto ends = connected_ends();
  FrameWriter writer([](const Message&) {});
  FrameReader reader;
  Heard heard;
  Message message{.from = NodeId(0), .to = NodeId(1), .chunk = ChunkId(0)};
  message.payload_bytes = 50'000;
  for (int i = 0; i < 3; ++i) {
    writer.add(message, Payload::owning(std::vector<std::byte>(50'000)));
  }
  EXPECT_FALSE(writer.write(ends.first.descriptor()));
  writer.accept(Lane::kShort);
  while (heard.acceptances[index_of(Lane::kShort)] == 0) {
    writer.write(ends.first.descriptor());
    reader.read(ends.second.descriptor(), heard);
  }
  EXPECT_EQ(heard.messages.size(), 1U);
}

TEST(FramesTest, AMessagePassesBetweenTheFragmentsOfALongOne) {
  const auto ends = connected_ends();
  FrameWriter writer([](const Message&) {});
  FrameReader reader;
  Heard heard;
  Message message{.from = NodeId(0), .to = NodeId(1), .chunk = ChunkId(0)};
  message.payload_bytes = 4 * kFragmentBytes;
  writer.add(message, Payload::owning(std::vector<std::byte>(4 * kFragmentBytes)));
  EXPECT_FALSE(writer.write(ends.first.descriptor()));
  message.chunk = ChunkId(1);
  message.payload_bytes = 100;
  writer.add(message, Payload::owning(std::vector<std::byte>(100)));
  while (heard.messages.size() < 2) {
    writer.write(ends.first.descriptor());
    reader.read(ends.second.descriptor(), heard);
  }
  EXPECT_EQ(heard.messages[0].message.chunk, ChunkId(1));
  EXPECT_EQ(heard.messages[1].payload.size(), 4 * kFragmentBytes);
}

// A peer cannot make the reader write where no payload belongs.
TEST(FramesTest, FragmentsThatDoNotFitAreRefused) {
  Message message{.from = NodeId(0), .to = NodeId(1), .chunk = ChunkId(0)};
  message.payload_bytes = kFragmentBytes + 1;
  const auto header_of = [](const Message& of, std::byte kind) {
    std::vector<std::byte> bytes{kind};
    std::ranges::copy(encode_header(of), std::back_inserter(bytes));
    return bytes;
  };
  const auto fragment = [](std::uint32_t length) {
    std::vector<std::byte> bytes{kFragmentFrame};
    for (int i = 0; i < 4; ++i) {
      bytes.push_back(static_cast<std::byte>(length >> (8 * i)));
    }
    return bytes;
  };
  const auto both = [](std::vector<std::byte> first, const std::vector<std::byte>& second) {
    std::ranges::copy(second, std::back_inserter(first));
    return first;
  };
  const auto begun = header_of(message, kLongFrame);
  Message small = message;
  small.payload_bytes = 8;
  for (const auto& bytes :
       {fragment(1), both(begun, fragment(0)), both(begun, fragment(kFragmentBytes + 2)),
        both(begun, begun), header_of(message, kMessageFrame), header_of(small, kLongFrame)}) {
    const auto ends = connected_ends();
    ASSERT_EQ(send(ends.first.descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    FrameReader reader;
    Heard heard;
    EXPECT_THROW(reader.read(ends.second.descriptor(), heard), std::runtime_error);
    EXPECT_TRUE(heard.messages.empty());
  }
}

// Whatever comes, it is refused or read, and never more than it announces.
RC_GTEST_PROP(FramesTest, GarbageIsRefused, (const std::vector<std::uint8_t>& garbage)) {
  const auto ends = connected_ends();
  const auto bytes =
      std::as_bytes(std::span(garbage)).first(std::min<std::size_t>(garbage.size(), 1000));
  const std::array known{kMessageFrame, kLongFrame, kFragmentFrame, kAcceptedFrame, kEndFrame};
  const bool is_garbage = !bytes.empty() && std::ranges::find(known, bytes[0]) == known.end();
  RC_PRE(is_garbage);
  RC_ASSERT(send(ends.first.descriptor(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
  FrameReader reader;
  Heard heard;
  RC_ASSERT_THROWS_AS(reader.read(ends.second.descriptor(), heard), std::runtime_error);
  RC_ASSERT(heard.messages.empty());
}

TEST(FramesTest, TheEndOfAConnectionIsHeardOf) {
  auto ends = connected_ends();
  FrameReader reader;
  Heard heard;
  EXPECT_EQ(reader.read(ends.second.descriptor(), heard), FrameReader::State::kDrained);
  ends.first.close();
  EXPECT_EQ(reader.read(ends.second.descriptor(), heard), FrameReader::State::kClosed);
  FrameWriter writer([](const Message&) {});
  writer.add_end();
  EXPECT_THROW(writer.write(ends.second.descriptor()), std::system_error);
}

}  // namespace
}  // namespace sluice
