#pragma once

#include <cstddef>
#include <span>

#include "base/prefetch.h"
#include "drivers/virtual/due.h"
#include "drivers/virtual/traffic.h"
#include "protocol/protocol.h"

namespace sluice {

// The state of many hosts fits into no cache: has what the next events need brought there, first
// the messages, then the hosts that they come to.
inline void foresee(const DueQueue& due, const Traffic& traffic, std::span<Protocol* const> hosts) {
  constexpr std::size_t kSoon = 4;
  constexpr std::size_t kHotBytes = 512;  // of a host, at its beginning
  if (const Due* const later = due.ahead(2 * kSoon)) {
    traffic.prefetch(*later);
  }
  if (const Due* const soon = due.ahead(kSoon)) {
    if (const auto host = traffic.host_of(*soon)) {
      prefetch(hosts[host->index()], kHotBytes);
    }
  }
}

}  // namespace sluice
