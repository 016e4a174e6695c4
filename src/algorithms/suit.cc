#include "algorithms/suit.h"

#include <algorithm>

namespace sluice {
namespace {

template <class T>
void suit(T& size, bool chosen, T suited) {
  size = chosen ? size : suited;
}

}  // namespace

void suit_to_network(Job& job, const ChosenSizes& chosen) {
  Strategy& strategy = job.strategy;
  if (job.topology.on_one_machine()) {
    // Memory has no queue that short hops and a small credit would keep short; fewer messages cost
    // less.
    suit(strategy.segment_params, chosen.segment, std::int64_t{262'144});
    suit(strategy.peer_credit, chosen.peer_credit, Bytes{8'000'000});
  } else if (job.link.gbps() < kSlowGbps) {
    suit(strategy.slice_params, chosen.slice, kAnnouncedParams);
    if (strategy.order == Order::kPriority) {
      // What is urgent waits for half a millisecond of what is on its way to the peer, which is a
      // slice at 1 Gb/s.
      const auto half_ms = static_cast<Bytes>(64'000 * job.link.gbps());
      suit(strategy.peer_credit, chosen.peer_credit,
           std::clamp(half_ms, Bytes{60'000}, Strategy().peer_credit));
    }
  } else if (job.link.gbps() > kFastGbps) {
    suit(strategy.slice_params, chosen.slice, std::int64_t{200'000});
    suit(strategy.peer_credit, chosen.peer_credit, Bytes{800'000});
    suit(strategy.credit, chosen.credit, Bytes{2'400'000});
  }
}

}  // namespace sluice
