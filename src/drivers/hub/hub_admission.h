#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace sluice {

// Ranks that have come back, each with the life that it is in: see Hub.
using Lives = std::map<std::size_t, std::uint32_t>;

// What all are told when processes join a run that goes on: the text of a HubFrame::Kind::kAdmit.
struct HubAdmission {
  Lives joining;               // now
  Lives all;                   // that ever did
  std::uint32_t channels = 0;  // how many phases there were

  bool operator==(const HubAdmission&) const = default;
};

std::string encode(const HubAdmission& admission);
HubAdmission decode_admission(const std::string& text);

// The beginning of such a text, which the hub reads, too; it may be malformed.
Lives joining_in(const std::string& text);

}  // namespace sluice
