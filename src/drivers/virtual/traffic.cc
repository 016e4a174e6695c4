#include "drivers/virtual/traffic.h"

#include <utility>

namespace sluice {
namespace {

std::uint32_t index_of(HostId host) { return static_cast<std::uint32_t>(host.index()); }

}  // namespace

void Traffic::Queue::push_back(std::uint32_t slot, Slots<Transit>& transits) {
  transits[slot].next = kNone;
  if (empty()) {
    first_ = slot;
  } else {
    transits[last_].next = slot;
  }
  last_ = slot;
}

void Traffic::Queue::push_front(std::uint32_t slot, Slots<Transit>& transits) {
  transits[slot].next = first_;
  if (empty()) {
    last_ = slot;
  }
  first_ = slot;
}

std::uint32_t Traffic::Queue::pop_front(const Slots<Transit>& transits) {
  const std::uint32_t slot = first_;
  first_ = transits[slot].next;
  return slot;
}

void Traffic::send(const Message& message, Payload payload, Time now) {
  const std::uint32_t slot = transits_.claim();
  Transit& transit = transits_[slot];
  transit.message = message;
  transit.leg = Transit::Leg::kData;
  transit.left = message.payload_bytes;
  transit.payload = std::move(payload);
  const HostId from = host_of(message.from);
  if (!is_on_network(message)) {
    return due_.ready_at(now, {Due::Kind::kArrived, slot});
  }
  if (is_counted(message)) {
    ++messages_;
    bytes_ += message.payload_bytes + cluster_.header_bytes;
  }
  if (cluster_.uses_rendezvous(message.payload_bytes)) {
    transit.leg = Transit::Leg::kAnnouncement;
  }
  if (cluster_.charges_messages()) {
    return enter_thread(from, slot, true, now);
  }
  hosts_[from.index()].egress.push_back(slot, transits_);
  pump_egress(from, now);
}

void Traffic::pump_egress(HostId host, Time now) {
  Interface& interface = interfaces_[cluster_.interface_of(host)];
  if (interface.busy) {
    return;
  }
  if (cluster_.hosts_per_nic == 1) {
    return send_fragment(host, now);
  }
  const std::size_t sharing = cluster_.hosts_per_nic;
  const std::size_t first = cluster_.interface_of(host) * sharing;
  for (std::size_t k = 0; k < sharing && !interface.busy; ++k) {
    const std::size_t next = first + (interface.turn + k) % sharing;
    if (next < hosts_.size() && !hosts_[next].egress.empty()) {
      interface.turn = static_cast<std::uint32_t>((next + 1 - first) % sharing);
      return send_fragment(HostId(next), now);
    }
  }
}

// The interface is free.
void Traffic::send_fragment(HostId host, Time now) {
  Host& of = hosts_[host.index()];
  if (of.egress.empty()) {
    return;
  }
  const std::uint32_t slot = of.egress.pop_front(transits_);
  Transit& transit = transits_[slot];
  const bool is_data = transit.leg == Transit::Leg::kData;
  const Bytes fragment = !is_data                                 ? 0
                         : cluster_.uses_rendezvous(transit.left) ? cluster_.fragment_bytes
                                                                  : transit.left;
  const bool is_request = transit.leg == Transit::Leg::kRequest;
  const NodeId to = is_request ? transit.message.from : transit.message.to;
  const HostId receiver = host_of(to);
  const bool is_first = transit.left == transit.message.payload_bytes;
  const bool is_last = !is_data || transit.left == fragment;
  const bool counted = is_counted(transit.message);
  Time egress_end{0};
  if (network_.has_hops()) {
    const Network::Passage out = network_.leave(host, fragment, now, counted);
    egress_end = out.end;
    const auto moving = fragments_.put({.transit = slot,
                                        .from = host,
                                        .to = receiver,
                                        .bytes = fragment,
                                        .hop = network_.first_hop(host, receiver),
                                        .first = is_first,
                                        .last = is_last,
                                        .end = out.end});
    send_to(fragments_[moving].hop, moving, out);
  } else {
    const auto flight = network_.begin(host, receiver, fragment, now, counted);
    egress_end = flight.egress_end;
    if (is_first) {
      transit.ingress_begin = flight.ingress_begin;
    }
    if (is_last) {
      expect(slot, receiver, flight.ingress_end);
    }
  }
  if (is_first) {
    transit.egress_begin = now;
  }
  transit.left -= fragment;
  interfaces_[cluster_.interface_of(host)].busy = true;
  due_.free_at(egress_end, {Due::Kind::kEgressFree, index_of(host)});
  if (!is_last) {
    of.egress.push_back(slot, transits_);
  } else if (is_data) {
    of.departs = true;
    of.departing = {transit.message, transit.egress_begin};
  }
}

void Traffic::send_to(Network::Hop hop, std::uint32_t fragment, const Network::Passage& passage) {
  Fragment& moving = fragments_[fragment];
  const Duration latency = network_.latency_before(hop, moving.from, moving.to);
  moving.hop = hop;
  moving.end = passage.end + latency;
  due_.ready_at(passage.begin + latency, {Due::Kind::kReached, fragment});
}

void Traffic::on_reached(std::uint32_t fragment, Time now) {
  const Fragment moving = fragments_[fragment];
  const Network::Passage passage =
      network_.pass(moving.hop, moving.from, moving.to, moving.bytes, now, moving.end,
                    is_counted(transits_[moving.transit].message));
  if (moving.hop != Network::Hop::kIngress) {
    const bool up = moving.hop == Network::Hop::kUplink;
    return send_to(up ? Network::Hop::kDownlink : Network::Hop::kIngress, fragment, passage);
  }
  fragments_.free(fragment);
  if (moving.first) {
    transits_[moving.transit].ingress_begin = passage.begin;
  }
  if (moving.last) {
    expect(moving.transit, moving.to, passage.end);
  }
}

void Traffic::expect(std::uint32_t slot, HostId at, Time arrival) {
  Queue& ingress = hosts_[at.index()].ingress;
  const bool first = ingress.empty();
  transits_[slot].arrival = due_.reserve_ready(arrival);
  ingress.push_back(slot, transits_);
  if (first) {
    due_.schedule(transits_[slot].arrival, {Due::Kind::kArrived, slot});
  }
}

// The first in the queue has arrived.
void Traffic::expect_next(HostId at) {
  Queue& ingress = hosts_[at.index()].ingress;
  ingress.pop_front(transits_);
  if (!ingress.empty()) {
    const std::uint32_t slot = ingress.front();
    due_.schedule(transits_[slot].arrival, {Due::Kind::kArrived, slot});
    transits_.prefetch(transits_[slot].next);  // most have been in flight for long
  }
}

std::optional<HostId> Traffic::host_of(const Due& due) const {
  switch (due.kind) {
    case Due::Kind::kThreadFree:
      return host_of_thread(due.index);
    case Due::Kind::kEgressFree:
      return HostId(due.index);
    case Due::Kind::kArrived:
      return destination(due.index);
    default:
      return std::nullopt;
  }
}

void Traffic::cut_link(HostId host, Time until) {
  network_.hold_ingress(host, until);
  Interface& interface = interfaces_[cluster_.interface_of(host)];
  if (!interface.busy) {
    interface.busy = true;
    due_.free_at(until, {Due::Kind::kEgressFree, index_of(host)});
  }
}

const Traffic::Departure* Traffic::on_egress_free(HostId host) {
  Host& of = hosts_[host.index()];
  interfaces_[cluster_.interface_of(host)].busy = false;
  return std::exchange(of.departs, false) ? &of.departing : nullptr;
}

Traffic::Transit* Traffic::on_arrived(std::uint32_t slot, Time now) {
  const HostId to = destination(slot);
  Transit& transit = transits_[slot];
  if (transit.leg == Transit::Leg::kDelayed) {
    transit.leg = Transit::Leg::kData;
  } else if (is_on_network(transit.message)) {
    expect_next(to);
    if (const Duration delay = delay_of(transit); delay > Duration{0}) {
      transit.leg = Transit::Leg::kDelayed;
      due_.ready_at(now + delay, {Due::Kind::kArrived, slot});
      return nullptr;
    }
  }
  if (is_on_network(transit.message) && cluster_.charges_messages()) {
    enter_thread(to, slot, false, now);
    return nullptr;
  }
  return arrive(slot, now);
}

// The request does not wait behind data, since little of what the receiver sends to that host is
// ever in front of it. The data joins the queue.
Traffic::Transit* Traffic::arrive(std::uint32_t slot, Time now) {
  Transit& transit = transits_[slot];
  switch (transit.leg) {
    case Transit::Leg::kData:
    case Transit::Leg::kDelayed:
      transits_.free(slot);
      return &transit;
    case Transit::Leg::kAnnouncement: {
      transit.leg = Transit::Leg::kRequest;
      const HostId receiver = host_of(transit.message.to);
      hosts_[receiver.index()].egress.push_front(slot, transits_);
      pump_egress(receiver, now);
      return nullptr;
    }
    case Transit::Leg::kRequest: {
      transit.leg = Transit::Leg::kData;
      const HostId sender = host_of(transit.message.from);
      hosts_[sender.index()].egress.push_back(slot, transits_);
      pump_egress(sender, now);
      return nullptr;
    }
  }
  return nullptr;
}

void Traffic::enter_thread(HostId host, std::uint32_t slot, bool outgoing, Time now) {
  const std::size_t first = host.index() * threads_per_host();
  const auto thread = static_cast<std::uint32_t>(outgoing ? first : first + threads_per_host() - 1);
  Queue& waiting = threads_[thread];
  const bool idle = waiting.empty();
  transits_[slot].outgoing = outgoing;
  waiting.push_back(slot, transits_);
  if (idle) {
    begin_chore(thread, now);
  }
}

// All bytes of a message are charged at once, with its announcement if it has one: the thread
// copies them while they leave, and what is urgent does not wait for that here.
void Traffic::begin_chore(std::uint32_t thread, Time now) {
  const Transit& transit = transits_[threads_[thread].front()];
  const bool data = transit.leg == Transit::Leg::kData;
  const MessageCost& cost = transit.outgoing ? cluster_.sending : cluster_.receiving;
  const Bytes bytes = transit.outgoing || data ? transit.message.payload_bytes : 0;
  const HostId host(thread / threads_per_host());
  cores_.run(host, {Due::Kind::kThreadFree, thread}, cost.time(bytes), 1, now);
}

Traffic::Transit* Traffic::on_thread_free(std::uint32_t thread, Time now) {
  Queue& waiting = threads_[thread];
  const std::uint32_t done = waiting.pop_front(transits_);
  if (!waiting.empty()) {
    begin_chore(thread, now);
  }
  if (!transits_[done].outgoing) {
    return arrive(done, now);
  }
  const HostId host(thread / threads_per_host());
  hosts_[host.index()].egress.push_back(done, transits_);
  pump_egress(host, now);
  return nullptr;
}

}  // namespace sluice
