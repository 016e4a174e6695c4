#include "report/totals.h"

namespace sluice {

double RunTotals::hidden_share() const {
  return communication == Duration(0) ? 1 : to_seconds(hidden) / to_seconds(communication);
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
