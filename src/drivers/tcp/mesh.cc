#include "drivers/tcp/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

#include "base/units.h"
#include "drivers/realtime/clock.h"
#include "drivers/tcp/seat.h"
#include "drivers/tcp/token.h"

namespace sluice {
namespace {

const Duration kConnectLimit = from_us(10e6);

constexpr std::size_t kRankBytes = 8;
using Greeting = std::array<std::byte, kTokenBytes + kRankBytes>;

Greeting greeting_of(const std::string& token, std::size_t rank) {
  const std::string text = fmt::format("{}{:08x}", token, rank);
  Greeting greeting{};
  std::memcpy(greeting.data(), text.data(), greeting.size());
  return greeting;
}

// The rank that greets; none if it does not know the token.
std::optional<std::size_t> rank_in(const Greeting& greeting, const std::string& token) {
  const std::string_view text(reinterpret_cast<const char*>(greeting.data()), greeting.size());
  std::size_t rank = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + kTokenBytes, end, rank, 16);
  return text.starts_with(token) && parsed.ptr == end ? std::optional(rank) : std::nullopt;
}

// By rank; none of those that do not take part.
using Seats = std::vector<std::optional<Seat>>;

bool has_value(const std::optional<Seat>& seat) { return seat.has_value(); }

using Unreachable = std::function<void(std::size_t rank)>;

Result<void> connect_to_lower(std::size_t rank, const Seats& seats, const std::string& token,
                              std::vector<Socket>& sockets, const Unreachable& unreachable) {
  const Greeting greeting = greeting_of(token, rank);
  for (std::size_t r = 0; r < rank; ++r) {
    if (!seats[r]) {
      continue;
    }
    auto socket = connect_to(seats[r]->endpoint, kConnectLimit);
    if (!socket) {
      unreachable(r);
      return socket.error().within(fmt::format("rank {}", r));
    }
    sockets[r] = *std::move(socket);
    if (const auto greeted = write_all(sockets[r], greeting, kGreetingLimit); !greeted) {
      return greeted.error().within(fmt::format("rank {}", r));
    }
  }
  return {};
}

// Turns strangers away.
Result<void> accept_higher(std::size_t rank, const Seats& seats, const Socket& listening,
                           const std::string& token, std::vector<Socket>& sockets) {
  const Clock clock;
  auto missing = std::ranges::count_if(std::span(seats).subspan(rank + 1), has_value);
  while (missing > 0) {
    const Duration left = kConnectLimit - clock.now();
    auto socket = left > Duration(0) ? accept_at(listening, left)
                                     : Result<Socket>(Error("not all have connected in time"));
    if (!socket) {
      return socket.error().within(fmt::format("{} ranks missing", missing));
    }
    Greeting greeting{};
    const bool greeted = static_cast<bool>(read_all(*socket, greeting, kGreetingLimit));
    const auto from = greeted ? rank_in(greeting, token) : std::nullopt;
    if (from && *from > rank && *from < sockets.size() && seats[*from] &&
        !sockets[*from].is_open()) {
      sockets[*from] = *std::move(socket);
      --missing;
    }
  }
  return {};
}

Result<void> connect_all(std::size_t rank, const Socket& listening, const Seats& seats,
                         std::vector<Socket>& sockets, const Unreachable& unreachable) {
  const std::string& token = (*std::ranges::find_if(seats, has_value))->token;
  if (const auto connected = connect_to_lower(rank, seats, token, sockets, unreachable);
      !connected) {
    return connected;
  }
  return accept_higher(rank, seats, listening, token, sockets);
}

}  // namespace

Result<std::vector<Socket>> connect_mesh(std::size_t rank, const std::string& address,
                                         const AllGather& all_gather,
                                         const Unreachable& unreachable) {
  const auto listening =
      address.empty() ? Result<Socket>(Error("MPI does not use TCP here")) : listen_at(address);
  const auto texts =
      all_gather(listening ? encode(seat_of(*listening)) : "!" + listening.error().message());
  Seats seats;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    seats.push_back(decode_seat(texts[r]));
    if (!seats[r] && !texts[r].empty()) {
      return Error(texts[r].substr(1)).within(fmt::format("rank {}", r));
    }
  }
  std::vector<Socket> sockets(seats.size());
  const auto connected = connect_all(rank, *listening, seats, sockets, unreachable);
  const auto outcomes = all_gather(connected ? "" : connected.error().message());
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    if (!outcomes[r].empty()) {
      return Error(outcomes[r]).within(fmt::format("rank {}", r));
    }
  }
  std::ranges::for_each(sockets, [](const Socket& socket) {
    if (socket.is_open()) {
      put_to_use(socket);
    }
  });
  return sockets;
}

}  // namespace sluice
