#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/units.h"

namespace sluice {

// Something that happens to a host, or to its link, in virtual time.
struct Fault {
  enum class Kind : std::uint8_t { kKill, kStop, kSlowHost, kSlowLink, kCutLink, kDelay };

  Kind kind = Kind::kKill;
  HostId host;
  Time at{0};
  Duration length{0};  // of all but kills
  double factor = 1;   // by which a slow one takes longer
  Duration by{0};      // delays: that much later come messages without a payload

  bool operator==(const Fault&) const = default;
};

struct Faults {
  std::vector<Fault> all = {};       // in the order of time
  Duration detection{from_us(3e6)};  // after a kill until the others hear of it
  // From there, for jobs whose others have to agree on sums of their own before they go on:
  Duration regrouping{from_us(0.3e6)};
  // For jobs that cannot go on without the host:
  Duration restart{from_us(20e6)};  // from there until the job trains again
  Duration checkpoint{0};           // by which writing one holds up training
  std::int64_t iterations = 0;      // of the training; 0: those that are simulated
  double kill_every_s = 0;          // mean time between kills of a host; 0: only those in `all`
};

// The text is TOML; errors name the source and the key. Hosts are numbered below `hosts`.
Result<Faults> parse_faults(const std::string& text, const std::string& source, std::size_t hosts);
Result<Faults> read_faults(const std::string& path, std::size_t hosts);

}  // namespace sluice
