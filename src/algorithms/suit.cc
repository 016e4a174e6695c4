#include "algorithms/suit.h"

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
      // What is urgent waits for one slice on its way to the peer, and not for three.
      suit(strategy.peer_credit, chosen.peer_credit, Bytes{60'000});
    }
  } else if (job.link.gbps() > kFastGbps) {
    suit(strategy.slice_params, chosen.slice, std::int64_t{200'000});
    suit(strategy.peer_credit, chosen.peer_credit, Bytes{800'000});
    suit(strategy.credit, chosen.credit, Bytes{2'400'000});
  }
}

}  // namespace sluice
