#pragma once

#include "formats/survey.h"

namespace sluice {

// From one rank to another, as a survey found it.
struct Link {
  std::size_t from = 0;
  std::size_t to = 0;
  Duration latency{0};  // half a round trip of an empty message
  Duration min{0};      // the shortest that it took: busy processes lengthen the others
  double gbps = 0;      // of the longest message, without the round trip
  double spread = 0;    // of its repetitions: (most - least) / median

  bool operator==(const Link&) const = default;
};

// Needs a round trip and a longer message.
Link link_of(const LinkTimings& timings);
std::vector<Link> links_of(const Survey& survey);

}  // namespace sluice
