#pragma once

#include <algorithm>

#include "model/job.h"
#include "model/strategy.h"

namespace sluice {

// How long messages should be on a link between machines; a smooth function of its rate.
//
// Each message costs the processors at its ends a fixed time. A message that takes the wire much
// longer than that keeps the wire busy; a longer one only makes what is urgent wait. MPI announces
// a message that it does not send eagerly, and awaits an answer, which are messages too: there it
// pays to exceed that length only by several times.
struct MessageSize {
  // `probe` has measured 14 to 18 us on x86-64 and aarch64.
  static constexpr double kMessageNs = 18'000;
  static constexpr double kShareOfWire = 0.05;
  static constexpr std::int64_t kMessagesOfRendezvous = 4;
  static constexpr std::int64_t kMaxParams = 1'000'000;

  std::int64_t params = kEagerParams;
  bool eager() const { return params <= kEagerParams; }
  Bytes bytes() const { return params * kFloatBytes; }
};

inline MessageSize message_size(double ns_per_byte, bool announced) {
  const double bytes = MessageSize::kMessageNs / (MessageSize::kShareOfWire * ns_per_byte);
  const auto params = static_cast<std::int64_t>(
      std::min(bytes / kFloatBytes, static_cast<double>(MessageSize::kMaxParams)));
  const std::int64_t pays = announced ? MessageSize::kMessagesOfRendezvous * kEagerParams : 0;
  return {params < pays ? kEagerParams : std::max(params, kEagerParams)};
}

}  // namespace sluice
