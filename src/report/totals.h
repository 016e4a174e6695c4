#pragma once

#include "model/topology.h"
#include "protocol/counters.h"
#include "report/breakdown.h"
#include "report/tally.h"

namespace sluice {

// The sums of a run.
struct RunTotals {
  Counters counters;
  TrafficByKind sent{};
  Duration communication{0};  // of all hosts with workers
  Duration hidden{0};         // of this, behind compute
  // In the steady iterations only:
  Duration steady_hidden{0};
  Duration steady_compute{0};  // of all workers
  WaitShares steady_waits;     // likewise

  // 1 if they never communicated.
  double hidden_share() const;
};

RunTotals totals_of(const Topology& topology, const Tally& tally, const Breakdown& breakdown,
                    const Counters& counters);

}  // namespace sluice
