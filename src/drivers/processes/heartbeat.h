#pragma once

#include <chrono>
#include <cstddef>
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

// Every process sends a heartbeat this often. One that has been silent for kSilence counts as lost:
// a job with a dead process ends within ten seconds.
inline constexpr Duration kBeat = std::chrono::seconds(1);
inline constexpr Duration kSilence = 7 * kBeat;

// Why a run fails without this rank; the host may be unknown, that is, empty.
std::string describe_silence(std::size_t rank, const std::string& host, Duration silence);

// A payload in flight, as seen from one end.
struct InFlight {
  MessageKind kind = MessageKind::kPush;
  LayerId layer;
  std::size_t peer = 0;  // the rank of the other end
  double seconds = 0;    // since it began
};

// The state of a process, which it sends to rank 0 every second.
struct Heartbeat {
  std::string host;
  std::optional<Gate::Position> worker;  // none: a server, which has no worker beside it
  double still_seconds = 0;              // how long the worker has been at this position
  std::optional<InFlight> outgoing;      // the oldest
  std::optional<InFlight> incoming;
};

std::string encode(const Heartbeat& heartbeat);
// The text may be malformed.
Result<Heartbeat> decode_heartbeat(const std::string& text);

// What the worker that holds up all others waits for, as a sentence with its rank and layer; none
// if no worker has waited for `patience_seconds`. The heartbeats are by rank. With `open` a worker
// may take its time for a step, and none holds up the others by that.
std::optional<std::string> diagnose(std::span<const Heartbeat> heartbeats,
                                    const std::vector<Layer>& layers, double patience_seconds,
                                    bool open = false);

// Why a job in lock step cannot end: a process has ended its training, as a loop of its own may,
// while another goes on and would wait for it forever. `done` says by rank before which iteration.
std::optional<std::string> describe_early_end(std::span<const std::optional<Iteration>> done,
                                              std::span<const Heartbeat> heartbeats);

}  // namespace sluice
