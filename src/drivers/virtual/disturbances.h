#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "drivers/virtual/cores.h"
#include "drivers/virtual/due.h"
#include "drivers/virtual/traffic.h"
#include "formats/faults.h"

namespace sluice {

// What is wrong with the hosts of a simulation.
class Disturbances {
 public:
  // Schedules the faults; null: nothing goes wrong. Those who are absent are lost already.
  Disturbances(const Faults* faults, std::span<const HostId> absent, std::size_t hosts,
               DueQueue& due, Cores& cores, Traffic& traffic);

  bool expected() const { return !hosts_.empty(); }
  bool is_dead(HostId host) const { return expected() && hosts_[host.index()].is_dead; }
  bool was_killed(HostId host) const { return is_dead(host) && !hosts_[host.index()].is_absent; }
  // Dead, and the others know.
  bool is_lost(HostId host) const { return expected() && hosts_[host.index()].is_lost; }
  // What takes this long takes now, on this host, if it also takes a factor longer.
  Duration slowed(HostId host, Duration usual, double factor = 1) const {
    const double slowdown = expected() ? factor * hosts_[host.index()].slowdown : factor;
    return slowdown == 1 ? usual : from_us(to_us(usual) * slowdown);
  }

  // Whether this event does not happen to the host now. It comes again later if the host stands
  // still or its link is cut; nobody computes on a dead one.
  bool put_off(const Due& due, HostId host, Time now);
  // These handle the events of the fault with this index. The second tells of a host that the
  // others hear to be lost.
  void on_fault(std::uint32_t index, Time now);
  std::optional<HostId> on_fault_over(std::uint32_t index);

 private:
  struct Host {
    bool is_absent = false;
    bool is_dead = false;
    bool is_lost = false;
    Duration stopped_for{0};
    Time stopped_until{0};
    Time cut_until{0};
    double slowdown = 1;
  };

  const Faults* faults_;
  DueQueue& due_;
  Cores& cores_;
  Traffic& traffic_;
  std::vector<Host> hosts_;  // none if nothing is expected
};

}  // namespace sluice
