#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/units.h"

namespace sluice::lab {

// Bytes that a host has received and sent so far.
struct Traffic {
  std::int64_t rx = 0;
  std::int64_t tx = 0;

  bool operator==(const Traffic&) const = default;
};

// The hosts' traffic, counted at the head's ends of their links, from the text of the head's
// /proc/net/dev. A host whose port is missing has none.
std::vector<Traffic> parse_traffic(const std::string& text, std::size_t hosts);

// The columns of utilisation.csv, and its rows for one moment: one row per host.
inline constexpr const char* kTrafficHeader = "time_s,host,rx_bytes,tx_bytes\n";
void write_traffic(std::ostream& out, Time now, const std::vector<Traffic>& traffic);

}  // namespace sluice::lab
