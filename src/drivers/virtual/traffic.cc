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
  const auto slot = transits_.put(
      {.message = message, .left = message.payload_bytes, .payload = std::move(payload)});
  const HostId from = host_of(message.from);
  if (from == host_of(message.to)) {
    return due_.ready_at(now, {Due::Kind::kArrived, slot});
  }
  ++messages_;
  bytes_ += message.payload_bytes + cluster_.header_bytes;
  if (cluster_.uses_rendezvous(message.payload_bytes)) {
    transits_[slot].leg = Transit::Leg::kAnnouncement;
  }
  if (cluster_.charges_messages()) {
    return enter_thread(from, slot, true, now);
  }
  hosts_[from.index()].egress.push_back(slot, transits_);
  pump_egress(from, now);
}

void Traffic::pump_egress(HostId host, Time now) {
  Host& of = hosts_[host.index()];
  if (of.busy || of.egress.empty()) {
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
  const auto flight = network_.begin(host, receiver, fragment, now);
  if (transit.left == transit.message.payload_bytes) {
    transit.egress_begin = now;
    transit.ingress_begin = flight.ingress_begin;
  }
  transit.left -= fragment;
  of.busy = true;
  due_.free_at(flight.egress_end, {Due::Kind::kEgressFree, index_of(host)});
  if (is_data && transit.left > 0) {
    of.egress.push_back(slot, transits_);
    return;
  }
  expect(slot, receiver, flight.ingress_end);
  if (is_data) {
    of.departing = {transit.message, transit.egress_begin};
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

std::optional<Traffic::Departure> Traffic::on_egress_free(HostId host) {
  Host& of = hosts_[host.index()];
  of.busy = false;
  return std::exchange(of.departing, std::nullopt);
}

std::optional<Traffic::Transit> Traffic::on_arrived(std::uint32_t slot, Time now) {
  const Transit& transit = transits_[slot];
  const bool is_request = transit.leg == Transit::Leg::kRequest;
  const HostId to = host_of(is_request ? transit.message.from : transit.message.to);
  const bool local = host_of(transit.message.from) == host_of(transit.message.to);
  if (!local) {
    expect_next(to);
    if (cluster_.charges_messages()) {
      enter_thread(to, slot, false, now);
      return std::nullopt;
    }
  }
  return arrive(slot, now);
}

// The request does not wait behind data, since little of what the receiver sends to that host is
// ever in front of it. The data joins the queue.
std::optional<Traffic::Transit> Traffic::arrive(std::uint32_t slot, Time now) {
  Transit& transit = transits_[slot];
  switch (transit.leg) {
    case Transit::Leg::kData:
      return transits_.take(slot);
    case Transit::Leg::kAnnouncement: {
      transit.leg = Transit::Leg::kRequest;
      const HostId receiver = host_of(transit.message.to);
      hosts_[receiver.index()].egress.push_front(slot, transits_);
      pump_egress(receiver, now);
      return std::nullopt;
    }
    case Transit::Leg::kRequest: {
      transit.leg = Transit::Leg::kData;
      const HostId sender = host_of(transit.message.from);
      hosts_[sender.index()].egress.push_back(slot, transits_);
      pump_egress(sender, now);
      return std::nullopt;
    }
  }
  return std::nullopt;
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

std::optional<Traffic::Transit> Traffic::on_thread_free(std::uint32_t thread, Time now) {
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
  return std::nullopt;
}

}  // namespace sluice
