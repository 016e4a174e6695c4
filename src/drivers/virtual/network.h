#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "formats/cluster.h"

namespace sluice {

// One full-duplex interface per host, or for several; the simplest model with the effects that
// matter:
//
//   sender   |== m1 ==|== m2 ==|            one fragment at a time, no preemption
//   receiver      |== m1 ==|== m2 ==|       cut through after the latency, one at a time,
//                                           in the order of the first bytes
//
// If all links have the same latency, fragments reach a receiver in the order in which they began
// to leave, and the delivery is known at that moment: begin() tells it. Otherwise, and where racks
// have uplinks, a fragment passes hop after hop, and its turn at a hop is known when its first byte
// is there: leave(), then pass() for every hop. The simulator decides what a fragment is.
class Network {
 public:
  struct Flight {
    Time egress_end;
    Time ingress_begin;
    Time ingress_end;
  };
  // What a fragment passes after the interface of its sender.
  enum class Hop : std::uint8_t { kUplink, kDownlink, kIngress };
  // From the first byte until the last.
  struct Passage {
    Time begin;
    Time end;
  };

  explicit Network(const Cluster& cluster);

  // Calls must come in the order of time, and not before the last egress_end of the interface. Busy
  // times are of what is counted.
  Flight begin(HostId from, HostId to, Bytes payload, Time now, bool counted = true) {
    Interface& sender = interfaces_[cluster_.interface_of(from)];
    Interface& receiver = interfaces_[cluster_.interface_of(to)];
    if (payload != payload_ || has_special_) {
      payload_ = payload;
      wire_ = sender.time_out(payload + cluster_.header_bytes);
      reception_ = receiver.time_in(payload + cluster_.header_bytes);
    }
    Flight flight{};
    flight.egress_end = now + wire_;
    flight.ingress_begin = std::max(now + cluster_.latency, receiver.ingress_free);
    flight.ingress_end =
        std::max(flight.ingress_begin + reception_, flight.egress_end + cluster_.latency);
    receiver.ingress_free = flight.ingress_end;
    if (counted) {
      sender.egress_busy += wire_;
      receiver.ingress_busy += reception_;
    }
    return flight;
  }

  // Whether fragments go hop by hop.
  bool has_hops() const { return has_hops_; }
  Passage leave(HostId from, Bytes payload, Time now, bool counted);
  Hop first_hop(HostId from, HostId to) const {
    return rack_of(from) == rack_of(to) ? Hop::kIngress : Hop::kUplink;
  }
  // The latency of a path is before its last hop.
  Duration latency_before(Hop hop, HostId from, HostId to) const;
  // The first byte is there now, the last one does not come before `last`.
  Passage pass(Hop hop, HostId from, HostId to, Bytes payload, Time now, Time last, bool counted);

  // From now on the interface of the host has its rate divided by this.
  void slow(HostId host, double divisor) {
    Interface& own = interfaces_[cluster_.interface_of(host)];
    own.out_gbps /= divisor;
    own.in_gbps /= divisor;
    has_special_ = true;
  }
  // Nothing comes in before this time.
  void hold_ingress(HostId host, Time until) {
    Time& free = interfaces_[cluster_.interface_of(host)].ingress_free;
    free = std::max(free, until);
  }

  // Means over the hosts.
  Duration egress_busy() const { return mean(&Interface::egress_busy); }
  Duration ingress_busy() const { return mean(&Interface::ingress_busy); }

 private:
  struct Interface {
    double out_gbps;
    double in_gbps;
    Time ingress_free{0};
    Duration egress_busy{0};
    Duration ingress_busy{0};

    Duration time_out(Bytes bytes) const { return time_at(out_gbps, bytes); }
    Duration time_in(Bytes bytes) const { return time_at(in_gbps, bytes); }
  };
  struct Rack {
    Time up_free{0};
    Time down_free{0};
  };

  static Duration time_at(double gbps, Bytes bytes) {
    return from_ns(static_cast<double>(bytes) * 8 / gbps);
  }
  Duration mean(Duration Interface::*busy) const;
  std::size_t rack_of(HostId host) const {
    return cluster_.racks ? host.index() / cluster_.racks->hosts : 0;
  }

  const Cluster& cluster_;
  std::vector<Interface> interfaces_;
  std::vector<Rack> racks_;
  std::vector<Duration> latencies_;  // by host, if they differ
  bool has_special_;                 // interfaces differ
  bool has_hops_;
  // What a payload of this length takes; most have the length of the one before.
  Bytes payload_ = -1;
  Duration wire_{0};
  Duration reception_{0};
};

}  // namespace sluice
