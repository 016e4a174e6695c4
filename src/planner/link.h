#pragma once

#include "formats/survey.h"

namespace sluice {

// The link from one rank to another, from a survey.
struct Link {
  std::size_t from = 0;
  std::size_t to = 0;
  Duration latency{0};        // half a round trip of an empty message
  Duration min{0};            // the shortest one: busy processes lengthen the others
  double gbps = 0;            // from the longest message, without the round trip
  double relative_range = 0;  // of the longest message's repetitions: (max - min) / median

  bool operator==(const Link&) const = default;
};

// Needs a round trip and a longer message.
Link link_of(const LinkTimings& timings);
std::vector<Link> links_of(const Survey& survey);

}  // namespace sluice
