#pragma once

#include <optional>
#include <string>

#include "drivers/tcp/socket.h"

namespace sluice {

// Where a process listens for one that shows this token.
struct Seat {
  Endpoint endpoint;
  std::string token;
};

std::string encode(const Seat& seat);
// None of a text that comes from nobody who has one.
std::optional<Seat> decode_seat(const std::string& text);

// Sits down at this address, with a new token.
Seat seat_of(const Socket& listening);
// Each waits no longer than `limit`. Who listens turns strangers away.
Result<Socket> connect_to(const Seat& seat, Duration limit);
Result<Socket> accept_at(const Socket& listening, const Seat& seat, Duration limit);

}  // namespace sluice
