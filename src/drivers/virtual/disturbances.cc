#include "drivers/virtual/disturbances.h"

#include <algorithm>
#include <utility>

namespace sluice {

Disturbances::Disturbances(const Faults* faults, std::span<const HostId> absent, std::size_t hosts,
                           DueQueue& due, Cores& cores, Traffic& traffic)
    : faults_(faults),
      due_(due),
      cores_(cores),
      traffic_(traffic),
      hosts_(faults == nullptr && absent.empty() ? 0 : hosts) {
  for (const HostId host : absent) {
    hosts_[host.index()] = {.is_absent = true, .is_dead = true, .is_lost = true};
  }
  for (std::size_t f = 0; faults != nullptr && f < faults->all.size(); ++f) {
    due_.ready_at(faults->all[f].at, {Due::Kind::kFault, static_cast<std::uint32_t>(f)});
  }
}

// The network goes on while a host stands still, and what it has brought is there at the end of the
// stop. What the host did itself takes that much longer.
bool Disturbances::put_off(const Due& due, HostId id, Time now) {
  const Host& host = hosts_[id.index()];
  if (host.is_dead && due.kind == Due::Kind::kCompute) {
    return true;
  }
  if (due.kind == Due::Kind::kEgressFree && now < host.cut_until) {
    due_.free_at(host.cut_until, due);
    return true;
  }
  if (now >= host.stopped_until) {
    return false;
  }
  const bool by_network = due.kind == Due::Kind::kEgressFree || due.kind == Due::Kind::kArrived;
  due_.ready_at(by_network ? host.stopped_until : now + host.stopped_for, due);
  return true;
}

void Disturbances::on_fault(std::uint32_t index, Time now) {
  const Fault& fault = faults_->all[index];
  Host& host = hosts_[fault.host.index()];
  Time over = now + fault.length;
  switch (fault.kind) {
    case Fault::Kind::kKill:
      host.is_dead = true;
      over = now + faults_->detection;
      break;
    case Fault::Kind::kStop:
      host.stopped_for = fault.length;
      host.stopped_until = over;
      cores_.pause(fault.host, fault.length);
      break;
    case Fault::Kind::kSlowHost:
      host.slowdown *= fault.factor;
      break;
    case Fault::Kind::kSlowLink:
      traffic_.slow_link(fault.host, fault.factor);
      break;
    case Fault::Kind::kCutLink:
      host.cut_until = std::max(host.cut_until, over);
      traffic_.cut_link(fault.host, over);
      break;
    case Fault::Kind::kDelay:
      traffic_.delay_control(fault.host, fault.by);
      break;
  }
  due_.ready_at(over, {Due::Kind::kFaultOver, index});
}

std::optional<HostId> Disturbances::on_fault_over(std::uint32_t index) {
  const Fault& fault = faults_->all[index];
  Host& host = hosts_[fault.host.index()];
  if (fault.kind == Fault::Kind::kSlowHost) {
    host.slowdown /= fault.factor;
  } else if (fault.kind == Fault::Kind::kSlowLink) {
    traffic_.slow_link(fault.host, 1 / fault.factor);
  } else if (fault.kind == Fault::Kind::kDelay) {
    traffic_.delay_control(fault.host, -fault.by);
  } else if (fault.kind == Fault::Kind::kKill && !std::exchange(host.is_lost, true)) {
    return fault.host;
  }
  return std::nullopt;
}

}  // namespace sluice
