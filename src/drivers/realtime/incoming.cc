#include "drivers/realtime/incoming.h"

#include <fmt/format.h>

#include "wire/bad_message.h"
#include "wire/header.h"

namespace sluice {

Message Incoming::decode(std::span<const std::byte> header, std::size_t source) {
  const std::lock_guard lock(mutex_);
  const auto decoded = decode_header(header);
  if (!decoded) {
    throw BadMessage(source, decoded.error().message());
  }
  const Message message = *decoded;
  if (const auto legal = rules_.check(message); !legal) {
    throw BadMessage(source, legal.error().message());
  }
  if (rank_of(message.from) != source) {
    throw BadMessage(source,
                     fmt::format("it says that it comes from node {}", message.from.index()));
  }
  if (rank_of(message.to) != rank_) {
    throw BadMessage(source,
                     fmt::format("it is for node {}, which is not here", message.to.index()));
  }
  if (rules_.is_once_per_iteration() && repeats_.has(message)) {
    throw BadMessage(source, fmt::format("a message of kind {} about chunk {} for iteration {} "
                                         "has come before",
                                         static_cast<int>(message.kind), message.chunk.index(),
                                         message.iteration));
  }
  return message;
}

std::span<float> Incoming::place(const Message& message, Landing& landing) {
  const std::span<float> place = landing.place(message);
  if (!place.empty() && static_cast<Bytes>(place.size_bytes()) != message.payload_bytes) {
    throw BadMessage(rank_of(message.from), fmt::format("it has {} bytes where {} belong",
                                                        message.payload_bytes, place.size_bytes()));
  }
  return place;
}

void Incoming::check_payload(const Message& message, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  if (const auto legal = rules_.check_payload(message, payload); !legal) {
    throw BadMessage(rank_of(message.from), legal.error().message());
  }
}

}  // namespace sluice
