#include "lab/traffic.h"

#include <fmt/ostream.h>

#include <algorithm>
#include <sstream>

#include "lab/plan.h"

namespace sluice::lab {

// A line is "NAME: " and sixteen numbers: bytes received is the first, bytes sent the ninth. What
// the head's end sends, the host receives.
std::vector<Traffic> parse_traffic(const std::string& text, std::size_t hosts) {
  std::vector<Traffic> traffic(hosts);
  const std::string prefix = port_name(0).substr(0, port_name(0).size() - 1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::ranges::replace(line, ':', ' ');
    std::istringstream fields(line);
    std::string name;
    std::int64_t received = 0;
    std::int64_t sent = 0;
    fields >> name >> received;
    for (int skipped = 0; skipped < 8; ++skipped) {
      fields >> sent;
    }
    for (std::size_t h = 0; fields && name.starts_with(prefix) && h < hosts; ++h) {
      if (name == port_name(h)) {
        traffic[h] = {.rx = sent, .tx = received};
      }
    }
  }
  return traffic;
}

void write_traffic(std::ostream& out, Time now, const std::vector<Traffic>& traffic) {
  for (std::size_t h = 0; h < traffic.size(); ++h) {
    fmt::print(out, "{:.6f},{},{},{}\n", to_seconds(now), h, traffic[h].rx, traffic[h].tx);
  }
}

}  // namespace sluice::lab
