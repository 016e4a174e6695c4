#pragma once

#include <vector>

#include "formats/cluster.h"
#include "planner/link.h"

namespace sluice {

// The links of a survey, summarised as one alpha and one beta.
struct NetworkFit {
  Duration latency{0};         // alpha: the median over the links
  double gbps = 0;             // 8 / beta: likewise
  std::vector<Link> links;     // the links used
  std::vector<Timing> points;  // by size: a message and its empty reply, over these links

  // 2 * alpha + beta * M, as for the points. (AllReduceCost can represent any line.)
  AllReduceCost line() const { return {2 * latency, 8 / gbps}; }
};

// Fits the links between machines, or all links if there is only one machine. Alpha comes from
// empty messages and beta from the longest: between them MPI changes its protocol, so no line fits
// there. Needs at least one link.
NetworkFit fit_network(const Survey& survey);

}  // namespace sluice
