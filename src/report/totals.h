#pragma once

#include "model/topology.h"
#include "protocol/counters.h"
#include "report/breakdown.h"
#include "report/tally.h"

namespace sluice {

// The sums of a run. They can be subtracted: the difference of two runs that differ only in length
// is what the additional iterations added, without the effects at the start and the end.
struct RunTotals {
  Counters counters;
  TrafficByKind sent{};
  Duration communication{0};  // of all hosts with workers
  Duration hidden{0};         // of this, behind compute
  // In the steady iterations only:
  Duration steady_hidden{0};
  Duration steady_compute{0};  // of all workers
  WaitShares steady_waits;     // likewise

  RunTotals& operator-=(const RunTotals& other);
  // 1 if they never communicated. After a subtraction the ends of two runs may not match exactly,
  // so the share is clamped to 0 ... 1.
  double hidden_share() const;
};

RunTotals totals_of(const Topology& topology, const Tally& tally, const Breakdown& breakdown,
                    const Counters& counters);

}  // namespace sluice
