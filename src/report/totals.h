#pragma once

#include "model/topology.h"
#include "protocol/counters.h"
#include "report/breakdown.h"
#include "report/tally.h"

namespace sluice {

// What a run did, as sums. They can be subtracted: two runs that differ in their length only tell
// what the further iterations of the longer one added, whatever happens at the ends of a run.
struct RunTotals {
  Counters counters;
  TrafficByKind sent{};
  Duration communication{0};  // of all hosts with workers
  Duration hidden{0};         // of it, behind compute
  // In the steady iterations only:
  Duration steady_hidden{0};
  Duration steady_compute{0};  // of all workers
  WaitShares steady_waits;     // likewise

  RunTotals& operator-=(const RunTotals& other);
  // 1 if they never communicated. Runs whose ends do not match may leave a little more hidden than
  // there is, or less than nothing: no share is beyond 0 and 1.
  double hidden_share() const;
};

RunTotals totals_of(const Topology& topology, const Tally& tally, const Breakdown& breakdown,
                    const Counters& counters);

}  // namespace sluice
