#include "planner/link.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace sluice {

Link link_of(const LinkTimings& timings) {
  check(timings.timings.size() > 1, "a link needs a round trip and a longer message");
  const Timing& round_trip = timings.timings.front();
  const Timing& longest = timings.timings.back();
  const Duration moving = std::max(longest.median - round_trip.median, Duration{1});
  return {timings.from,
          timings.to,
          round_trip.median / 2,
          round_trip.min / 2,
          static_cast<double>(longest.bytes) * 8 / (to_us(moving) * 1e3),
          to_us(longest.max - longest.min) / to_us(longest.median)};
}

std::vector<Link> links_of(const Survey& survey) {
  std::vector<Link> links;
  std::ranges::transform(survey.links, std::back_inserter(links), link_of);
  return links;
}

}  // namespace sluice
