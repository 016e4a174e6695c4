#include "drivers/tcp/seat.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "base/units.h"
#include "drivers/realtime/clock.h"
#include "drivers/tcp/token.h"

namespace sluice {
namespace {

bool shows(const Socket& socket, const std::string& token) {
  std::string shown(token.size(), ' ');
  return read_all(socket, std::as_writable_bytes(std::span(shown)), kGreetingLimit) &&
         shown == token;
}

}  // namespace

std::string encode(const Seat& seat) {
  return fmt::format("{} {} {}", seat.endpoint.address, seat.endpoint.port, seat.token);
}

std::optional<Seat> decode_seat(const std::string& text) {
  std::istringstream in(text);
  Seat seat;
  in >> seat.endpoint.address >> seat.endpoint.port >> seat.token;
  return in && seat.token.size() == kTokenBytes ? std::optional(seat) : std::nullopt;
}

Seat seat_of(const Socket& listening) { return {endpoint_of(listening), draw_token()}; }

Result<Socket> connect_to(const Seat& seat, Duration limit) {
  auto socket = connect_to(seat.endpoint, limit);
  if (socket) {
    if (auto shown = write_all(*socket, std::as_bytes(std::span(seat.token)), kGreetingLimit);
        !shown) {
      return shown.error();
    }
  }
  return socket;
}

Result<Socket> accept_at(const Socket& listening, const Seat& seat, Duration limit) {
  const Clock clock;
  for (;;) {
    auto socket = accept_at(listening, limit - std::min(limit, clock.now()));
    if (!socket || shows(*socket, seat.token)) {
      return socket;
    }
  }
}

}  // namespace sluice
