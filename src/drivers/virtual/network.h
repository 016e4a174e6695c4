#pragma once

#include <algorithm>
#include <vector>

#include "base/id.h"
#include "formats/cluster.h"

namespace sluice {

// One full-duplex interface per host; the simplest model with the effects that matter:
//
//   sender   |== m1 ==|== m2 ==|            one fragment at a time, no preemption
//   receiver      |== m1 ==|== m2 ==|       cut through after the latency, one at a time,
//                                           in the order of the first bytes
//
// All links have the same latency, so fragments reach a receiver in the order in which they began
// to leave, and the delivery is known at that moment. The simulator decides what a fragment is.
class Network {
 public:
  struct Flight {
    Time egress_end;
    Time ingress_begin;
    Time ingress_end;
  };

  explicit Network(const Cluster& cluster) : cluster_(cluster), hosts_(cluster.topology.hosts()) {}

  // Calls must come in the order of time, and not before the sender's last egress_end.
  Flight begin(HostId from, HostId to, Bytes payload, Time now) {
    if (payload != payload_) {
      payload_ = payload;
      wire_ = cluster_.wire_time(payload + cluster_.header_bytes);
      reception_ = cluster_.ingress_time(payload + cluster_.header_bytes);
    }
    Host& sender = hosts_[from.index()];
    Host& receiver = hosts_[to.index()];
    Flight flight{};
    flight.egress_end = now + wire_;
    flight.ingress_begin = std::max(now + cluster_.latency, receiver.ingress_free);
    flight.ingress_end =
        std::max(flight.ingress_begin + reception_, flight.egress_end + cluster_.latency);
    receiver.ingress_free = flight.ingress_end;
    sender.egress_busy += wire_;
    receiver.ingress_busy += reception_;
    return flight;
  }

  Duration egress_busy(HostId host) const { return hosts_[host.index()].egress_busy; }
  Duration ingress_busy(HostId host) const { return hosts_[host.index()].ingress_busy; }

 private:
  struct Host {
    Time ingress_free{0};
    Duration egress_busy{0};
    Duration ingress_busy{0};
  };

  const Cluster& cluster_;
  std::vector<Host> hosts_;
  // What a payload of this length takes; most have the length of the one before.
  Bytes payload_ = -1;
  Duration wire_{0};
  Duration reception_{0};
};

}  // namespace sluice
