// Readers of what other processes send.
#include <sys/socket.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "codecs/block_top_k.h"
#include "codecs/sparse.h"
#include "drivers/hub/hub_frame.h"
#include "drivers/processes/survey_messages.h"
#include "drivers/tcp/frames.h"
#include "drivers/tcp/socket.h"
#include "fuzz/target.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "wire/header.h"

namespace sluice::fuzz {
namespace {

constexpr std::size_t kRanks = 4;
constexpr std::int64_t kLength = 1000;
constexpr TopKOptions kTopK{.block = 64, .kept = 4};

std::span<const std::byte> bytes_of(const std::string& input) {
  return std::as_bytes(std::span(input));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What one of two readers takes; both must give an answer.
Answer either(const Answer& one, const Answer& other) {
  check_answer(other);
  return one.taken ? one : other;
}

Job small_job(std::string_view preset) {
  Job job;
  job.layers = lay_out({"a", "b", "c"}, {300, 0, 700});
  job.topology = Topology(kRanks, 1, kRanks);
  job.strategy = find_preset(preset)->strategy;
  job.strategy.slice_params = 128;
  return job;
}

// The jobs whose rules look at messages.
std::vector<Assembly> jobs() {
  std::vector<Assembly> all;
  for (const char* preset : {"p3", "wfbp", "bsp+dgc", "gosgd", "ad-psgd", "sparseloco", "noloco"}) {
    all.push_back(assemble(small_job(preset)));
  }
  return all;
}

// A message of this kind that some job allows.
std::optional<Message> first_allowed(MessageKind kind, std::span<const Assembly> assemblies) {
  Message message;
  message.kind = kind;
  message.iteration = 1;
  for (std::size_t pair = 0; pair < 4 * kRanks * kRanks; ++pair) {
    message.from = NodeId(pair % (2 * kRanks));
    message.to = NodeId(pair / (2 * kRanks));
    for (const Bytes bytes : {0, 4, 512, 1024, 1200}) {
      message.payload_bytes = bytes;
      for (const Assembly& assembly : assemblies) {
        if (assembly.rules->check(message)) {
          return message;
        }
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> message_seeds() {
  const std::vector<Assembly> assemblies = jobs();
  std::vector<std::string> seeds;
  for (int kind = 0; kind < kMessageKinds; ++kind) {
    if (const auto message = first_allowed(static_cast<MessageKind>(kind), assemblies)) {
      seeds.push_back(text_of(encode_header(*message)) +
                      std::string(static_cast<std::size_t>(message->payload_bytes), '\0'));
    }
  }
  return seeds;
}

// What passes the rules of a job is inside it: the rules look at the payload's contents too.
Answer read_message(const std::string& input, const std::filesystem::path& /*folder*/) {
  static const std::vector<Assembly> assemblies = jobs();
  const std::size_t head = std::min(input.size(), kHeaderBytes);
  const auto message = decode_header(bytes_of(input).first(head));
  if (!message) {
    return answer_of(message);
  }
  Answer answer;
  for (const Assembly& assembly : assemblies) {
    Result<void> allowed = assembly.rules->check(*message);
    const auto payload = bytes_of(input).subspan(head);
    if (allowed && static_cast<Bytes>(payload.size()) == message->payload_bytes) {
      allowed = assembly.rules->check_payload(*message, payload);
    }
    answer = either(answer, answer_of(allowed));
  }
  return answer;
}

std::vector<std::string> sparse_seeds() {
  const std::vector<float> chunk(kLength, 1.5F);
  const std::vector<std::uint32_t> positions{3, 17, 900};
  return {text_of(encode_sparse(chunk, positions))};
}

Answer read_sparse(const std::string& input, const std::filesystem::path& /*folder*/) {
  const auto view = SparseView::parse(bytes_of(input), kLength);
  if (view) {
    std::vector<float> sum(kLength);
    view->add_to(sum, 1);
  }
  return answer_of(view);
}

std::vector<std::string> top_k_seeds() {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kLength; ++i) {
    values.push_back(static_cast<float>(i % 37) - 11);
  }
  return {text_of(BlockTopK(kTopK).take(values))};
}

Answer read_top_k(const std::string& input, const std::filesystem::path& /*folder*/) {
  const BlockTopK codec(kTopK);
  const Result<void> valid = codec.check(bytes_of(input), kLength);
  if (valid) {
    std::vector<float> sum(kLength);
    codec.add(bytes_of(input), sum);
  }
  return answer_of(valid);
}

std::vector<std::string> survey_seeds() {
  return {write_hello({}), write_reach({true, false, true, true}),
          write_order({.peer = 2, .measures = true}), write_order({}),
          write_result({.peer = 2, .links = {}})};
}

Answer read_survey(const std::string& input, const std::filesystem::path& /*folder*/) {
  const Answer hello = answer_of(read_hello(input));
  const Answer reach = answer_of(read_reach(input, kRanks));
  const Answer order = answer_of(read_order(input, kRanks));
  return either(either(hello, reach), either(order, answer_of(read_result(input, 1, kRanks))));
}

std::vector<std::string> hub_seeds() {
  using Kind = HubFrame::Kind;
  return {encode({.kind = Kind::kHello, .rank = 1, .text = "0123456789abcdef"}),
          encode({.kind = Kind::kText, .rank = 2, .channel = 3, .text = "a text"}) +
              encode({.kind = Kind::kBeat}),
          encode({.kind = Kind::kOutlive, .text = "1 2 3"}) + encode({.kind = Kind::kBye})};
}

Answer read_hub(const std::string& input, const std::filesystem::path& /*folder*/) {
  HubFrameReader reader;
  reader.add(input);
  try {
    while (reader.next()) {
    }
  } catch (const std::runtime_error& error) {
    return answer_of(Result<void>(Error(error.what())));
  }
  return answer_of(Result<void>());
}

// Two ends of a connection inside this process.
std::pair<Socket, Socket> ends() {
  std::array<int, 2> two{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, two.data()) != 0) {
    throw std::runtime_error("no pair of sockets");
  }
  return {Socket(two[0]), Socket(two[1])};
}

std::vector<std::string> frame_seeds() {
  const auto [out, in] = ends();
  FrameWriter writer([](const Message&) {});
  std::vector<std::string> seeds;
  for (const Bytes bytes : {Bytes{0}, Bytes{40}, static_cast<Bytes>(kFragmentBytes) + 4}) {
    Message message;
    message.payload_bytes = bytes;
    writer.add(message, Payload::owning(std::vector<float>(static_cast<std::size_t>(bytes) / 4)));
    writer.accept(lane_of(message));
    std::string all;
    std::array<char, 4096> part{};
    for (bool more = true; more;) {
      more = !writer.write(out.descriptor()) || writer.is_waiting();
      for (ssize_t count = 0; (count = recv(in.descriptor(), part.data(), part.size(), 0)) > 0;) {
        all.append(part.data(), static_cast<std::size_t>(count));
      }
    }
    seeds.push_back(std::move(all));
  }
  return seeds;
}

// What comes over a connection, to a process that expects no longer payloads than these.
class FrameSink final : public FrameReader::Sink {
 public:
  Message begin(std::span<const std::byte> header, std::span<std::byte>& /*place*/) override {
    const auto message = decode_header(header);
    if (!message || message->payload_bytes > kMost) {
      throw std::runtime_error(message ? "a payload that is too long" : message.error().message());
    }
    return *message;
  }
  void message(const Message& /*message*/, const Payload& /*payload*/) override {}
  void accepted(Lane /*lane*/, std::uint32_t /*messages*/) override {}
  void ended() override {}
  void refuse(const std::string& why) override { throw std::runtime_error(why); }

 private:
  static constexpr Bytes kMost = 2 * static_cast<Bytes>(kFragmentBytes);
};

Answer read_frames(const std::string& input, const std::filesystem::path& /*folder*/) {
  const auto [out, in] = ends();
  FrameReader reader;
  FrameSink sink;
  try {
    for (std::size_t sent = 0; sent < input.size();) {
      const ssize_t count = send(out.descriptor(), input.data() + sent, input.size() - sent, 0);
      sent += count > 0 ? static_cast<std::size_t>(count) : 0;
      while (reader.read(in.descriptor(), sink) == FrameReader::State::kMore) {
      }
    }
  } catch (const std::runtime_error& error) {
    return answer_of(Result<void>(Error(error.what())));
  }
  return answer_of(Result<void>());
}

constexpr std::array kWireTargets{
    Target{"message", message_seeds, read_message},
    Target{"sparse", sparse_seeds, read_sparse},
    Target{"top-k", top_k_seeds, read_top_k},
    Target{"survey", survey_seeds, read_survey},
    Target{"hub", hub_seeds, read_hub},
    Target{"frames", frame_seeds, read_frames},
};

}  // namespace

std::span<const Target> wire_targets() { return kWireTargets; }

}  // namespace sluice::fuzz
