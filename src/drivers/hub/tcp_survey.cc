#include "drivers/hub/tcp_survey.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drivers/processes/interfaces.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/ping_pong.h"
#include "drivers/processes/survey_messages.h"
#include "drivers/processes/survey_rounds.h"
#include "drivers/realtime/clock.h"
#include "drivers/tcp/exchange.h"
#include "drivers/tcp/seat.h"

namespace sluice {
namespace {

// One end of a connection that is measured. TCP has no empty messages: an answer has a byte at
// least.
class TcpPingPong {
 public:
  // The payload has kMaxPingPongBytes.
  TcpPingPong(Socket socket, const SurveySpec& spec, std::span<std::byte> payload)
      : socket_(std::move(socket)), spec_(spec), payload_(payload) {
    put_to_use(socket_);
  }

  std::optional<std::vector<LinkTimings>> measure(std::size_t self, std::size_t peer) {
    auto links = measure_both_ways(
        spec_, self, peer, [this](const PingPongCommand& command) { return exchange(command); });
    return send(bytes_of({.out = -1})) ? std::move(links) : std::nullopt;
  }

  // Answers until the peer has finished measuring, or is silent for too long.
  void serve(std::size_t peer) {
    while (clock_.now() < ping_pong_limit(spec_)) {
      PingPongCommand command;
      if (!receive(std::as_writable_bytes(std::span(&command, 1)))) {
        return;
      }
      if (const auto legal = check_command(command); !legal) {
        throw BadMessage(peer, legal.error().message());
      }
      if (command.out < 0 || !receive(part(command.out)) || !send(answer_to(command))) {
        return;
      }
    }
  }

 private:
  std::optional<Duration> exchange(const PingPongCommand& command) {
    const Time begin = clock_.now();
    const bool done =
        send(bytes_of(command)) && send(part(command.out)) && receive(answer_to(command));
    return done ? std::optional(clock_.now() - begin) : std::nullopt;
  }

  static std::array<std::byte, sizeof(PingPongCommand)> bytes_of(const PingPongCommand& command) {
    std::array<std::byte, sizeof command> bytes{};
    std::ranges::copy(std::as_bytes(std::span(&command, 1)), bytes.begin());
    return bytes;
  }
  std::span<std::byte> part(Bytes bytes) const {
    return payload_.first(static_cast<std::size_t>(bytes));
  }
  std::span<std::byte> answer_to(const PingPongCommand& command) const {
    return part(std::max<Bytes>(command.back, 1));
  }
  bool send(std::span<const std::byte> bytes) const {
    return bytes.empty() ||
           static_cast<bool>(exchange_bytes(socket_, bytes, socket_, {}, spec_.patience));
  }
  bool receive(std::span<std::byte> bytes) const {
    return bytes.empty() ||
           static_cast<bool>(exchange_bytes(socket_, {}, socket_, bytes, spec_.patience));
  }

  Socket socket_;
  const SurveySpec& spec_;
  Clock clock_;
  std::span<std::byte> payload_;
};

class Surveyor {
 public:
  Surveyor(ProcessWorld& world, const SurveySpec& spec)
      : world_(world), spec_(spec), payload_(static_cast<std::size_t>(kMaxPingPongBytes)) {}

  std::optional<Survey> run() {
    std::vector<std::string> machines;
    hail(machines);
    std::vector<std::vector<RankPair>> rounds;
    if (leads()) {
      rounds = survey_rounds(all_pairs(), machines);
    }
    const auto count = std::stoul(world_.broadcast(std::to_string(rounds.size()), "the rounds"));
    rounds.resize(count);  // those of others are empty
    for (const std::vector<RankPair>& round : rounds) {
      conduct(round);
    }
    return leads() ? std::optional(std::move(survey_)) : std::nullopt;
  }

 private:
  bool leads() const { return world_.rank() == 0; }

  // The leader hears who is there, and on which machines.
  void hail(std::vector<std::string>& machines) {
    const RankInfo own{host_name(), interfaces(), boot_id()};
    const auto hellos = world_.gather(write_hello(own), "what they tell of themselves");
    for (std::size_t r = 0; r < hellos.size(); ++r) {
      survey_.ranks.push_back(r == 0 ? own : trusted(read_hello(hellos[r]), r));
      machines.push_back(survey_.ranks[r]->host + " " + survey_.ranks[r]->boot_id);
    }
  }

  std::vector<RankPair> all_pairs() const {
    std::vector<RankPair> pairs;
    for (std::size_t a = 0; a < world_.size(); ++a) {
      for (std::size_t b = a + 1; b < world_.size(); ++b) {
        pairs.emplace_back(a, b);
      }
    }
    return pairs;
  }

  // The pairs are known to the leader.
  void conduct(const std::vector<RankPair>& pairs) {
    std::vector<std::string> orders(world_.size());
    for (const auto& [measures, serves] : pairs) {
      orders[measures] = write_order({.peer = serves, .measures = true});
      orders[serves] = write_order({.peer = measures, .measures = false});
    }
    const std::string order = world_.scatter(orders, "whom to measure");
    const std::string result =
        order.empty() ? "" : take_part(trusted(read_order(order, world_.size()), 0));
    const auto results = world_.gather(result, "what was measured");
    for (const auto& [measures, serves] : pairs) {
      note(trusted(read_result(results.at(measures), measures, world_.size()), measures),
           {measures, serves});
    }
  }

  void note(SurveyResult result, const RankPair& pair) {
    if (result.links.empty()) {
      survey_.silent.push_back(pair);
    }
    std::ranges::move(result.links, std::back_inserter(survey_.links));
  }

  std::string take_part(const SurveyOrder& order) {
    const std::size_t peer = order.peer.value();
    if (order.measures) {
      const auto seat = decode_seat(world_.receive_text(peer, "where it listens"));
      auto socket = seat ? connect_to(*seat, spec_.patience) : Result<Socket>(Error("nowhere"));
      SurveyResult result{.peer = peer, .links = {}};
      if (socket) {
        result.links = TcpPingPong(*std::move(socket), spec_, payload_)
                           .measure(world_.rank(), peer)
                           .value_or(std::vector<LinkTimings>{});
      }
      return write_result(result);
    }
    serve(peer);
    return "";
  }

  void serve(std::size_t peer) {
    const auto listening = listen_at(world_.address());
    if (!listening) {
      return world_.send_text(peer, "");
    }
    const Seat seat = seat_of(*listening);
    world_.send_text(peer, encode(seat));
    if (auto socket = accept_at(*listening, seat, spec_.patience)) {
      TcpPingPong(*std::move(socket), spec_, payload_).serve(peer);
    }
  }

  ProcessWorld& world_;
  const SurveySpec& spec_;
  std::vector<std::byte> payload_;
  Survey survey_;  // the leader's
};

}  // namespace

std::optional<Survey> survey_over_tcp(ProcessWorld& world, const SurveySpec& spec) {
  return Surveyor(world, spec).run();
}

}  // namespace sluice
