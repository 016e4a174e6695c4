#include "report/totals.h"

#include <algorithm>

namespace sluice {

RunTotals& RunTotals::operator-=(const RunTotals& other) {
  counters -= other.counters;
  for (std::size_t kind = 0; kind < sent.size(); ++kind) {
    sent[kind] -= other.sent[kind];
  }
  communication -= other.communication;
  hidden -= other.hidden;
  steady_hidden -= other.steady_hidden;
  steady_compute -= other.steady_compute;
  steady_waits -= other.steady_waits;
  return *this;
}

double RunTotals::hidden_share() const {
  return communication <= Duration(0)
             ? 1
             : std::clamp(to_seconds(hidden) / to_seconds(communication), 0.0, 1.0);
}

RunTotals totals_of(const Topology& topology, const Tally& tally, const Breakdown& breakdown,
                    const Counters& counters) {
  RunTotals totals;
  totals.counters = counters;
  totals.sent = tally.sent_by_kind();
  totals.steady_waits = breakdown.shares();
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    totals.steady_compute += tally.worker(w).steady_compute;
  }
  for (std::size_t h = 0; h < topology.worker_hosts(); ++h) {
    const HostTally host = tally.host(HostId(h));
    totals.communication += host.communication;
    totals.hidden += host.hidden;
    totals.steady_hidden += host.steady_hidden;
  }
  return totals;
}

}  // namespace sluice
