#pragma once

#include <vector>

#include "formats/cluster.h"
#include "planner/link.h"

namespace sluice {

// The links of a survey as one alpha and one beta.
struct NetworkFit {
  Duration latency{0};         // alpha: the median over the links
  double gbps = 0;             // 8 / beta: likewise
  std::vector<Link> links;     // that count
  std::vector<Timing> points;  // by size: a message and its empty answer, over these links

  // 2 * alpha + beta * M, for each of the points. (The form of an all-reduce serves for any line.)
  AllReduceCost line() const { return {2 * latency, 8 / gbps}; }
};

// Of the links between machines, or of all if there is one machine only. Alpha is taken from empty
// messages and beta from the longest: between them lie changes of MPI's protocol, which no line
// follows. Needs a link.
NetworkFit fit_network(const Survey& survey);

}  // namespace sluice
