#pragma once

#include <array>
#include <cstdint>

#include "base/units.h"

namespace sluice {

// What the mechanisms of a host did, as evidence that they are on.
struct Counters {
  std::int64_t messages = 0;        // handed to the network
  Bytes payload_bytes = 0;          // in these messages
  std::int64_t local_messages = 0;  // between nodes of one host, without the network
  std::int64_t chunks = 0;          // chunks of gradients or parameters sent
  std::int64_t egress_overtakings = 0;
  std::int64_t inbox_overtakings = 0;
  Bytes before_packing = 0;  // of the gradients that a codec packed
  Bytes after_packing = 0;
  std::int64_t local_sums = 0;  // gradients added within their machine
  std::int64_t updates = 0;
  std::int64_t outer_steps = 0;  // of chunks
  std::int64_t releases = 0;

  Counters& operator+=(const Counters& other);
};

inline constexpr std::array kCounters{
    &Counters::messages,       &Counters::payload_bytes,      &Counters::local_messages,
    &Counters::chunks,         &Counters::egress_overtakings, &Counters::inbox_overtakings,
    &Counters::before_packing, &Counters::after_packing,      &Counters::local_sums,
    &Counters::updates,        &Counters::outer_steps,        &Counters::releases,
};

inline Counters& Counters::operator+=(const Counters& other) {
  for (const auto counter : kCounters) {
    this->*counter += other.*counter;
  }
  return *this;
}

}  // namespace sluice
