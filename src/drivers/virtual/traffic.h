#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/prefetch.h"
#include "base/slots.h"
#include "drivers/virtual/cores.h"
#include "drivers/virtual/due.h"
#include "drivers/virtual/network.h"
#include "formats/cluster.h"
#include "protocol/payload.h"
#include "wire/message.h"

namespace sluice {

// Messages on their way: from the sender's message thread through the two interfaces to the
// receiver's message thread. A thread takes time only if the cluster says what a message and a byte
// cost a processor; it handles one message at a time, in the order in which they come. A host has
// one for all its messages, or one for those that leave and one for those that come.
class Traffic {
 public:
  // A message in flight. In a rendezvous it goes out as an announcement, comes back as a request,
  // and goes out again with its data.
  struct alignas(64) Transit {
    enum class Leg : std::uint8_t { kAnnouncement, kRequest, kData, kDelayed };
    Message message;
    Leg leg = Leg::kData;
    bool outgoing = true;    // in the queue of a message thread: on its way out
    std::uint32_t next = 0;  // in the queue where it waits
    DueQueue::Key arrival{};
    Bytes left{0};  // data that has not begun to leave
    Payload payload;
    Time egress_begin{0};
    Time ingress_begin{0};
  };
  // A message whose last fragment has left its host.
  struct Departure {
    Message message;
    Time begin;
  };

  // Messages and busy times are of what iterations from `counted_from` on wait for.
  Traffic(const Cluster& cluster, Iteration counted_from, DueQueue& due, Cores& cores)
      : cluster_(cluster),
        counted_from_(counted_from),
        due_(due),
        cores_(cores),
        network_(cluster),
        hosts_(cluster.topology.hosts()),
        interfaces_(hosts_.size()),
        threads_(cluster.topology.hosts() * threads_per_host()) {}

  void send(const Message& message, Payload payload, Time now);
  // These handle the events of the same names. What they return, if anything, stays as it is until
  // the next call of send().
  const Departure* on_egress_free(HostId host);
  void on_reached(std::uint32_t fragment, Time now);
  Transit* on_arrived(std::uint32_t slot, Time now);
  Transit* on_thread_free(std::uint32_t thread, Time now);
  // Lets the next message out; after on_egress_free, when the departure has been told. Hosts that
  // share an interface take turns.
  void pump_egress(HostId host, Time now);
  // Whether a message goes to another host of the same machine: through memory, in no time. It is
  // sent when it arrives, and is no traffic.
  bool is_beside(const Message& message) const {
    if (cluster_.hosts_per_nic == 1) {
      return false;
    }
    const HostId from = host_of(message.from);
    const HostId to = host_of(message.to);
    return from != to && cluster_.interface_of(from) == cluster_.interface_of(to);
  }

  // The link of the host is slower by this factor, or as it was before if it is below 1.
  void slow_link(HostId host, double factor) { network_.slow(host, factor); }
  // Messages without a payload to and from the host come so much later from now on, or sooner.
  void delay_control(HostId host, Duration by) { hosts_[host.index()].control_delay += by; }
  // Nothing passes the link of the host before this time. If a fragment is about to leave, its
  // kEgressFree is to be put off until then.
  void cut_link(HostId host, Time until);
  // Has what the event is about brought into the cache.
  void prefetch(const Due& due) const {
    if (due.kind == Due::Kind::kArrived) {
      transits_.prefetch(due.index);
    } else if (due.kind == Due::Kind::kEgressFree) {
      sluice::prefetch(&hosts_[due.index], sizeof(Host));
    }
  }
  // To which host the event happens; none if it is not about messages at a host.
  std::optional<HostId> host_of(const Due& due) const;

  const Network& network() const { return network_; }
  std::int64_t messages() const { return messages_; }
  Bytes bytes() const { return bytes_; }

 private:
  // Where the message goes that arrives in this slot.
  HostId destination(std::uint32_t slot) const {
    const Transit& transit = transits_[slot];
    const bool is_request = transit.leg == Transit::Leg::kRequest;
    return host_of(is_request ? transit.message.from : transit.message.to);
  }
  // By which it comes later than usual.
  Duration delay_of(const Transit& transit) const {
    const bool is_control =
        transit.leg == Transit::Leg::kData && transit.message.payload_bytes == 0;
    return is_control ? hosts_[host_of(transit.message.from).index()].control_delay +
                            hosts_[host_of(transit.message.to).index()].control_delay
                      : Duration{0};
  }
  HostId host_of_thread(std::uint32_t thread) const { return HostId(thread / threads_per_host()); }

  // Slots of transits, chained through them: a transit waits in one place at a time.
  class Queue {
   public:
    bool empty() const { return first_ == kNone; }
    std::uint32_t front() const { return first_; }
    void push_back(std::uint32_t slot, Slots<Transit>& transits);
    void push_front(std::uint32_t slot, Slots<Transit>& transits);
    std::uint32_t pop_front(const Slots<Transit>& transits);

   private:
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t first_ = kNone;
    std::uint32_t last_ = kNone;
  };
  struct Host {
    Queue egress;   // what waits behind the current fragment
    Queue ingress;  // what arrives, one after the other; only the first is scheduled
    bool departs = false;
    Departure departing{};  // then the message whose last fragment leaves
    Duration control_delay{0};
  };

  struct Interface {
    bool busy = false;
    std::uint32_t turn = 0;  // of its hosts, who is next
  };
  // On its way hop by hop.
  struct Fragment {
    std::uint32_t transit;
    HostId from;
    HostId to;
    Bytes bytes;
    Network::Hop hop;  // the one that it reaches next
    bool first;        // of its message
    bool last;
    Time end;  // when its last byte can be there
  };

  bool is_on_network(const Message& message) const {
    return host_of(message.from) != host_of(message.to) && !is_beside(message);
  }
  bool is_counted(const Message& message) const { return message.iteration >= counted_from_; }
  void send_fragment(HostId host, Time now);
  void send_to(Network::Hop hop, std::uint32_t fragment, const Network::Passage& passage);
  void enter_thread(HostId host, std::uint32_t slot, bool outgoing, Time now);
  void begin_chore(std::uint32_t thread, Time now);
  void expect(std::uint32_t slot, HostId at, Time arrival);
  void expect_next(HostId at);
  Transit* arrive(std::uint32_t slot, Time now);
  HostId host_of(NodeId node) const { return cluster_.topology.host_of(node); }
  std::size_t threads_per_host() const {
    return static_cast<std::size_t>(cluster_.message_threads);
  }

  const Cluster& cluster_;
  Iteration counted_from_;
  DueQueue& due_;
  Cores& cores_;
  Network network_;
  std::vector<Host> hosts_;
  std::vector<Interface> interfaces_;  // at least as many as there are
  // What waits for each message thread, host by host; the first is in progress.
  std::vector<Queue> threads_;
  Slots<Transit> transits_;
  Slots<Fragment> fragments_;
  std::int64_t messages_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace sluice
