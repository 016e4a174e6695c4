#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/layer.h"
#include "runtime/gate.h"
#include "wire/message.h"

namespace sluice {

// A payload under way, as the one end of it sees it.
struct Underway {
  MessageKind kind = MessageKind::kPush;
  LayerId layer;
  std::size_t peer = 0;  // the rank of the other end
  double seconds = 0;    // since it began
};

// How a process is, as it tells rank 0 every second.
struct Vital {
  std::string host;
  Gate::Position worker;
  double still_seconds = 0;          // the worker has been at this position for so long
  std::optional<Underway> outgoing;  // the oldest
  std::optional<Underway> incoming;
};

std::string encode(const Vital& vital);
Vital decode_vital(const std::string& text);

// What the worker that holds up all others waits for, in a sentence with its rank and layer; none
// if no worker has waited for as long as `patience_seconds`. The vitals are by rank.
std::optional<std::string> diagnose(std::span<const Vital> vitals, const std::vector<Layer>& layers,
                                    double patience_seconds);

}  // namespace sluice
