#include "drivers/virtual/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/slots.h"
#include "drivers/virtual/allreduce_channel.h"
#include "drivers/virtual/event_queue.h"
#include "drivers/virtual/network.h"
#include "drivers/virtual/numbers.h"
#include "drivers/virtual/virtual_worker.h"
#include "drivers/virtual/work_time.h"

namespace sluice {
namespace {

void check_in_range(Time now) {
  if (now >= kForever) [[unlikely]] {
    throw std::runtime_error(
        fmt::format("the simulation passes {:.0f} days of virtual time, the most it can count; "
                    "simulate fewer iterations, or smaller times",
                    to_seconds(kForever) / 86'400));
  }
}

class Simulator final : public Effects {
 public:
  explicit Simulator(const Simulation& setup);

  SimulationResult run();

  void send(const Message& message, Payload payload) override;
  void start(Work work) override;
  void release(NodeId worker, LayerId layer, Iteration iteration) override;
  Payload borrow(NodeId node, const BufferRange& what) override;
  Payload copy(NodeId node, const BufferRange& what) override {
    return Numbers::snapshot(borrow(node, what));
  }

 private:
  // An event; `index` is a worker, a host, or a slot of what is in flight.
  struct Due {
    enum class Kind : std::uint8_t { kCompute, kEgressFree, kDeliver, kWorkDone, kChannelFree };
    Kind kind;
    std::uint32_t index;
  };
  // A message in flight. In a rendezvous it goes out as an announcement, comes back as a request,
  // and goes out again with its data.
  struct Transit {
    enum class Leg : std::uint8_t { kAnnouncement, kRequest, kData };
    Message message;
    Payload payload;
    Leg leg = Leg::kData;
    Bytes left{0};  // data that has not begun to leave
    Time egress_begin{0};
    Time ingress_begin{0};
  };
  struct Doing {
    Work work;
    Time begin;
  };
  struct Interface {
    std::deque<std::uint32_t> queue;  // slots of what waits behind the current fragment
    bool busy = false;
    struct Ending {
      Message message;
      Time begin;
    };
    std::optional<Ending> ending;  // the message whose last fragment leaves
  };
  struct Pace {
    Time since{0};  // when the current step, or the wait for it, began
    bool waiting = true;
  };

  void dispatch(const Due& due);
  void deliver_event(HostId host, const Event& event);
  void try_compute(NodeId worker);
  void on_computed(NodeId worker);
  void pump_egress(HostId host);
  void on_egress_free(HostId host);
  void on_delivered(std::uint32_t slot);
  void on_negotiated(std::uint32_t slot);
  void on_work_done(std::uint32_t slot);
  void on_channel_free();
  void pump_channel();
  HostId host_of(NodeId node) const { return setup_.cluster.topology.host_of(node); }

  const Simulation& setup_;
  Time now_{0};
  EventQueue<Due> due_;
  Network network_;
  std::vector<Interface> interfaces_;  // by host
  std::vector<VirtualWorker> workers_;
  std::vector<Pace> paces_;  // by worker
  Slots<Transit> transits_;
  Slots<Doing> doings_;
  AllReduceChannel channel_;
  Time channel_since_{0};  // when the reduction in flight began
  Numbers numbers_;
  SimulationResult result_;
};

Simulator::Simulator(const Simulation& setup)
    : setup_(setup),
      network_(setup.cluster),
      interfaces_(setup.cluster.topology.hosts()),
      workers_(setup.cluster.topology.workers(), VirtualWorker(setup.profile, setup.iterations)),
      paces_(workers_.size()),
      channel_(setup.channel_order, workers_.size()),
      numbers_(setup.numbers, setup.cluster.topology) {
  check(setup.hosts.size() == interfaces_.size(), "every host has its protocol");
  result_.starts.assign(static_cast<std::size_t>(setup.iterations) + 1, Time{0});
}

SimulationResult Simulator::run() {
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    deliver_event(host_of(NodeId(w)), Started{NodeId(w)});
  }
  while (!due_.empty()) {
    now_ = due_.next_time();
    check_in_range(now_);
    ++result_.events;
    dispatch(due_.pop());
  }
  for (const VirtualWorker& worker : workers_) {
    check(worker.finished(), "every worker reaches the end");
  }
  result_.end = now_;
  const auto hosts = static_cast<std::int64_t>(interfaces_.size());
  for (std::size_t h = 0; h < interfaces_.size(); ++h) {
    result_.egress_busy += network_.egress_busy(HostId(h)) / hosts;
    result_.ingress_busy += network_.ingress_busy(HostId(h)) / hosts;
  }
  result_.channel_overtakings = channel_.overtakings();
  return std::move(result_);
}

void Simulator::dispatch(const Due& due) {
  switch (due.kind) {
    case Due::Kind::kCompute:
      return on_computed(NodeId(due.index));
    case Due::Kind::kEgressFree:
      return on_egress_free(HostId(due.index));
    case Due::Kind::kDeliver:
      return on_delivered(due.index);
    case Due::Kind::kWorkDone:
      return on_work_done(due.index);
    case Due::Kind::kChannelFree:
      return on_channel_free();
  }
}

void Simulator::deliver_event(HostId host, const Event& event) {
  setup_.hosts[host.index()]->handle(event, *this);
}

// ---- compute ------------------------------------------------------------------------------------

void Simulator::release(NodeId worker, LayerId layer, Iteration iteration) {
  workers_[worker.index()].release(layer, iteration);
  if (paces_[worker.index()].waiting) {
    try_compute(worker);
  }
}

void Simulator::try_compute(NodeId id) {
  VirtualWorker& worker = workers_[id.index()];
  Pace& pace = paces_[id.index()];
  if (!worker.can_begin()) {
    if (!pace.waiting) {
      pace = {now_, true};
    }
    return;
  }
  const auto [pass, layer, usual_length] = worker.next();
  const Duration length = setup_.slowdowns.empty()
                              ? usual_length
                              : from_us(to_us(usual_length) * setup_.slowdowns[id.index()]);
  if (pace.waiting && pace.since < now_ && setup_.observer != nullptr) {
    setup_.observer->waited(id, layer, worker.iteration(), pace.since, now_);
  }
  pace = {now_, false};
  if (worker.at_start_of_iteration()) {
    Time& start = result_.starts[static_cast<std::size_t>(worker.iteration())];
    start = std::max(start, now_);
    if (worker.finished()) {
      return;
    }
  }
  due_.ready_at(now_ + length, {Due::Kind::kCompute, static_cast<std::uint32_t>(id.index())});
}

void Simulator::on_computed(NodeId id) {
  VirtualWorker& worker = workers_[id.index()];
  const auto [pass, layer, length] = worker.next();
  const Iteration iteration = worker.iteration();
  if (setup_.observer != nullptr) {
    setup_.observer->computed(id, layer, iteration, pass, paces_[id.index()].since, now_);
  }
  worker.advance();
  if (pass == Pass::kForward && worker.next().pass == Pass::kBackward) {
    numbers_.compute_gradients(id, iteration);
  }
  try_compute(id);
  if (pass == Pass::kBackward) {
    deliver_event(host_of(id), GradientReady{id, layer, iteration});
    if (layer.index() == 0) {
      deliver_event(host_of(id), BackwardDone{id, iteration});
    }
  }
}

// ---- network ------------------------------------------------------------------------------------

Payload Simulator::borrow(NodeId node, const BufferRange& what) {
  return numbers_.view(node, what);
}

void Simulator::send(const Message& message, Payload payload) {
  if (message.kind == MessageKind::kAllReduce) {
    channel_.join(message);
    return pump_channel();
  }
  // What is in flight must not change when the sender continues.
  const auto slot = transits_.put(
      {.message = message, .payload = Numbers::snapshot(payload), .left = message.payload_bytes});
  const HostId from = host_of(message.from);
  if (from == host_of(message.to)) {
    due_.ready_at(now_, {Due::Kind::kDeliver, slot});
    return;
  }
  ++result_.messages;
  result_.bytes += message.payload_bytes + setup_.cluster.header_bytes;
  if (setup_.cluster.uses_rendezvous(message.payload_bytes)) {
    transits_[slot].leg = Transit::Leg::kAnnouncement;
  }
  interfaces_[from.index()].queue.push_back(slot);
  pump_egress(from);
}

void Simulator::pump_egress(HostId host) {
  Interface& interface = interfaces_[host.index()];
  if (interface.busy || interface.queue.empty()) {
    return;
  }
  const std::uint32_t slot = interface.queue.front();
  interface.queue.pop_front();
  Transit& transit = transits_[slot];
  const bool is_data = transit.leg == Transit::Leg::kData;
  const bool is_first = transit.left == transit.message.payload_bytes;
  const Bytes fragment = !is_data ? 0
                         : setup_.cluster.uses_rendezvous(transit.left)
                             ? setup_.cluster.fragment_bytes
                             : transit.left;
  const NodeId to =
      transit.leg == Transit::Leg::kRequest ? transit.message.from : transit.message.to;
  const auto flight = network_.begin(host, host_of(to), fragment, now_);
  if (is_first) {
    transit.egress_begin = now_;
    transit.ingress_begin = flight.ingress_begin;
  }
  transit.left -= fragment;
  interface.busy = true;
  due_.free_at(flight.egress_end,
               {Due::Kind::kEgressFree, static_cast<std::uint32_t>(host.index())});
  if (is_data && transit.left > 0) {
    interface.queue.push_back(slot);
    return;
  }
  due_.ready_at(flight.ingress_end, {Due::Kind::kDeliver, slot});
  if (is_data) {
    interface.ending = {transit.message, transit.egress_begin};
  }
}

void Simulator::on_egress_free(HostId host) {
  Interface& interface = interfaces_[host.index()];
  interface.busy = false;
  if (const auto ended = std::exchange(interface.ending, std::nullopt)) {
    if (setup_.observer != nullptr) {
      setup_.observer->sent(ended->message, ended->begin, now_);
    }
    deliver_event(host, Sent{ended->message});
    if (ended->message.wants_return) {
      deliver_event(host, Returned{ended->message});
    }
  }
  pump_egress(host);
}

void Simulator::on_delivered(std::uint32_t slot) {
  if (transits_[slot].leg != Transit::Leg::kData) {
    return on_negotiated(slot);
  }
  Transit transit = transits_.take(slot);
  const Message& message = transit.message;
  const HostId host = host_of(message.to);
  const bool local = host_of(message.from) == host;
  if (!local && setup_.observer != nullptr) {
    setup_.observer->received(message, transit.ingress_begin, now_);
  }
  numbers_.land(message.to, setup_.hosts[host.index()]->landing(message), transit.payload);
  deliver_event(host, Received{message, std::move(transit.payload)});
  if (local && message.wants_return) {
    deliver_event(host, Returned{message});
  }
}

// The request does not wait behind data, since little of what the receiver sends to that host is
// ever in front of it. The data joins the queue.
void Simulator::on_negotiated(std::uint32_t slot) {
  Transit& transit = transits_[slot];
  if (transit.leg == Transit::Leg::kAnnouncement) {
    transit.leg = Transit::Leg::kRequest;
    const HostId receiver = host_of(transit.message.to);
    interfaces_[receiver.index()].queue.push_front(slot);
    return pump_egress(receiver);
  }
  transit.leg = Transit::Leg::kData;
  const HostId sender = host_of(transit.message.from);
  interfaces_[sender.index()].queue.push_back(slot);
  pump_egress(sender);
}

// ---- arithmetic ---------------------------------------------------------------------------------

void Simulator::start(Work work) {
  const Duration length = work_time(work, setup_.cluster);
  const auto slot = doings_.put({std::move(work), now_});
  due_.ready_at(now_ + length, {Due::Kind::kWorkDone, slot});
}

void Simulator::on_work_done(std::uint32_t slot) {
  auto [work, begin] = doings_.take(slot);
  if (setup_.observer != nullptr) {
    setup_.observer->worked(work, begin, now_);
  }
  Payload output = numbers_.execute(work);
  work.sources.clear();
  const HostId host = host_of(work.node);
  deliver_event(host, Finished{std::move(work), std::move(output)});
}

// ---- the all-reduce channel ---------------------------------------------------------------------

void Simulator::pump_channel() {
  if (const auto next = channel_.begin()) {
    const AllReduceCost& cost = *setup_.cluster.allreduce;
    const Duration length = cost.startup + setup_.cluster.sync +
                            from_ns(static_cast<double>(next->payload_bytes) * cost.ns_per_byte);
    ++result_.messages;
    result_.bytes += next->payload_bytes;
    result_.channel_busy += length;
    channel_since_ = now_;
    due_.free_at(now_ + length, {Due::Kind::kChannelFree, 0});
  }
}

void Simulator::on_channel_free() {
  const Message request = channel_.end();
  const Time begin = channel_since_;
  numbers_.all_reduce(request);
  pump_channel();
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Message message = request;
    message.from = message.to = NodeId(w);
    if (setup_.observer != nullptr) {
      setup_.observer->sent(message, begin, now_);
    }
    deliver_event(host_of(message.to), Received{message, {}});
  }
}

}  // namespace

Duration SimulationResult::iteration_time() const {
  const std::size_t last = starts.size() - 1;
  const std::size_t first = last / 2;
  return (starts[last] - starts[first]) / static_cast<std::int64_t>(last - first);
}

SimulationResult simulate(const Simulation& simulation) { return Simulator(simulation).run(); }

}  // namespace sluice
