#pragma once

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/strategy.h"
#include "model/topology.h"
#include "wire/message.h"

namespace sluice::testing {

// Counts what each host has in flight and throws if it exceeds the strategy's credits. A message
// larger than a credit may go alone.
class CreditWatch {
 public:
  CreditWatch(const Strategy& strategy, const Topology& topology)
      : topology_(topology),
        host_credit_(strategy.order == Order::kPriority ? strategy.credit
                                                        : std::numeric_limits<Bytes>::max()),
        peer_credit_(strategy.peer_credit),
        by_host_(topology.hosts()),
        by_pair_(topology.hosts() * topology.hosts()) {}

  void on_send(const Message& message) {
    const auto [from, to] = ends_of(message);
    take(by_host_[from.index()], message.payload_bytes, host_credit_, "a host keeps to its credit");
    take(of_pair(from, to), message.payload_bytes, peer_credit_, "a host keeps to a peer's");
  }

  void on_sent(const Message& message) {
    const auto [from, to] = ends_of(message);
    by_host_[from.index()] -= message.payload_bytes;
    of_pair(from, to) -= message.payload_bytes;
  }

  // What the host has in flight to the lost one counts no longer.
  void on_lost(HostId host, HostId lost) {
    by_host_[host.index()] -= std::exchange(of_pair(host, lost), 0);
  }

  // What its predecessor had in flight counts no longer.
  void on_revived(HostId host) {
    by_host_[host.index()] = 0;
    for (std::size_t to = 0; to < by_host_.size(); ++to) {
      of_pair(host, HostId(to)) = 0;
    }
  }

 private:
  std::pair<HostId, HostId> ends_of(const Message& message) const {
    return {topology_.host_of(message.from), topology_.host_of(message.to)};
  }

  Bytes& of_pair(HostId from, HostId to) {
    return by_pair_[from.index() * by_host_.size() + to.index()];
  }

  static void take(Bytes& in_flight, Bytes bytes, Bytes credit, std::string_view rule) {
    check(in_flight == 0 || bytes <= credit - in_flight, rule);
    in_flight += bytes;
  }

  Topology topology_;
  Bytes host_credit_;
  Bytes peer_credit_;
  std::vector<Bytes> by_host_;
  std::vector<Bytes> by_pair_;
};

}  // namespace sluice::testing
