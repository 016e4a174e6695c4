#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "drivers/realtime/gate.h"
#include "model/layer.h"
#include "wire/message.h"

namespace sluice {

// A payload in flight, as the one end of it sees it.
struct InFlight {
  MessageKind kind = MessageKind::kPush;
  LayerId layer;
  std::size_t peer = 0;  // the rank of the other end
  double seconds = 0;    // since it began
};

// How a process is, as it tells rank 0 every second.
struct Heartbeat {
  std::string host;
  Gate::Position worker;
  double still_seconds = 0;          // the worker has been at this position for so long
  std::optional<InFlight> outgoing;  // the oldest
  std::optional<InFlight> incoming;
};

std::string encode(const Heartbeat& heartbeat);
// The text may come from anyone.
Result<Heartbeat> decode_heartbeat(const std::string& text);

// What the worker that holds up all others waits for, in a sentence with its rank and layer; none
// if no worker has waited for as long as `patience_seconds`. The vitals are by rank.
std::optional<std::string> diagnose(std::span<const Heartbeat> heartbeats,
                                    const std::vector<Layer>& layers, double patience_seconds);

}  // namespace sluice
