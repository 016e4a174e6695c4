#include "drivers/processes/position_watch.h"

#include <tuple>

#include "drivers/processes/launch.h"

namespace sluice {

Heartbeat PositionWatch::heartbeat() {
  const Time now = world_.clock.now();
  if (const auto position = furthest_behind(); position != position_) {
    position_ = position;
    since_ = now;
  }
  return {.host = host_name(),
          .worker = position_,
          .still_seconds = to_seconds(now - since_),
          .outgoing = oldest(true),
          .incoming = oldest(false)};
}

std::optional<Gate::Position> PositionWatch::furthest_behind() const {
  const auto place = [](const Gate::Position& at) { return std::tuple(at.iteration, at.layer); };
  std::optional<Gate::Position> behind;
  for (const auto& [worker, gate] : world_.gates) {
    const Gate::Position position = gate.position();
    if (!behind || place(position) < place(*behind)) {
      behind = position;
    }
  }
  return behind;
}

std::optional<InFlight> PositionWatch::oldest(bool outgoing) const {
  for (const PeerTransport::Transfer& transfer : world_.transport.transfers()) {
    if (transfer.outgoing == outgoing) {
      const Message& message = transfer.message;
      return InFlight{.kind = message.kind,
                      .layer = world_.chunks.layers_of(message.chunk).front(),
                      .peer = world_.topology.host_of(outgoing ? message.to : message.from).index(),
                      .seconds = to_seconds(world_.clock.now() - transfer.since)};
    }
  }
  return std::nullopt;
}

}  // namespace sluice
