#include "drivers/virtual/simulator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/slots.h"
#include "drivers/virtual/allreduce_channel.h"
#include "drivers/virtual/compute_pace.h"
#include "drivers/virtual/cores.h"
#include "drivers/virtual/disturbances.h"
#include "drivers/virtual/due.h"
#include "drivers/virtual/foresight.h"
#include "drivers/virtual/in_range.h"
#include "drivers/virtual/numbers.h"
#include "drivers/virtual/traffic.h"
#include "drivers/virtual/virtual_steps.h"
#include "drivers/virtual/virtual_worker.h"
#include "drivers/virtual/work_time.h"

namespace sluice {
namespace {

class Simulator final : public Effects {
 public:
  explicit Simulator(const Simulation& setup);

  SimulationResult run();

  void send(const Message& message, Payload payload) override;
  void start(Work work) override;
  void release(NodeId worker, LayerId layer, Iteration iteration) override;
  Payload borrow(NodeId node, const BufferRange& what) override {
    return numbers_.view(node, what);
  }
  Payload copy(NodeId node, const BufferRange& what) override {
    return Numbers::snapshot(borrow(node, what));
  }

 private:
  struct Doing {
    Work work;
    Time begin;
  };
  struct Pace {
    Time since{0};  // when the current step, or the wait for it, began
    bool waiting = true;
    double slowdown = 1;  // in this iteration
  };

  void dispatch(const Due& due);
  // What happens as soon as no host handles an event.
  void settle();
  void note(NodeId worker);
  void deliver_event(HostId host, const Event& event);
  void try_compute(NodeId worker);
  void on_computed(NodeId worker);
  void on_egress_free(HostId host);
  void confirm(const Message& message);
  void deliver(Traffic::Transit* transit);  // unless it is null
  void on_work_done(std::uint32_t slot);
  void on_channel_free();
  void pump_channel();
  HostId host_of(NodeId node) const { return setup_.cluster.topology.host_of(node); }
  // To whom the event happens; none if to no host in particular.
  std::optional<HostId> host_of(const Due& due) const;
  void on_lost(std::optional<HostId> lost);
  void end_together();

  const Simulation& setup_;
  Time now_{0};
  DueQueue due_;
  Cores cores_;
  Traffic traffic_;
  std::vector<VirtualWorker> workers_;
  ComputePace compute_pace_;
  std::vector<Pace> paces_;  // by worker
  Slots<Doing> doings_;
  AllReduceChannel channel_;
  Numbers numbers_;
  VirtualSteps steps_;
  std::vector<NodeId> ending_;  // have the parameters after their last iteration
  Disturbances disturbances_;
  SimulationResult result_;
};

Simulator::Simulator(const Simulation& setup)
    : setup_(setup),
      cores_(setup.cluster.cores, setup.cluster.topology.hosts(), due_),
      traffic_(setup.cluster, setup.first_counted(), due_, cores_),
      workers_(setup.cluster.topology.workers(),
               VirtualWorker(setup.profile, setup.first, setup.iterations)),
      compute_pace_(setup.cluster, setup.slowdowns, setup.seed),
      paces_(workers_.size()),
      channel_(setup.cluster, setup.channel_order, setup.first_counted()),
      numbers_(setup.numbers, setup.cluster.topology),
      steps_(setup.numbers, numbers_, workers_),
      disturbances_(setup.faults, setup.absent, setup.hosts.size(), due_, cores_, traffic_) {
  check(setup.hosts.size() == setup.cluster.topology.hosts(), "every host has its protocol");
  result_.starts.assign(static_cast<std::size_t>(setup.iterations) + 1, Time{0});
}

SimulationResult Simulator::run() {
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    deliver_event(host_of(NodeId(w)), Started{NodeId(w), setup_.first});
  }
  settle();
  while (!due_.empty()) {
    now_ = due_.next_time();
    check_in_range(now_);
    ++result_.events;
    const Due due = due_.pop();
    foresee(due_, traffic_, setup_.hosts);
    const auto host = disturbances_.expected() ? host_of(due) : std::nullopt;
    if (host && disturbances_.put_off(due, *host, now_)) {
      continue;
    }
    dispatch(due);
    settle();
  }
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const HostId host = host_of(NodeId(w));
    check(disturbances_.is_dead(host) || workers_[w].finished(), "every worker reaches the end");
    const bool counts = disturbances_.is_lost(host) || !result_.ended_at;
    result_.iterations_lost +=
        counts && disturbances_.was_killed(host) ? setup_.iterations - workers_[w].iteration() : 0;
  }
  result_.end = now_;
  result_.egress_busy = traffic_.network().egress_busy();
  result_.ingress_busy = traffic_.network().ingress_busy();
  result_.messages = traffic_.messages() + channel_.reductions();
  result_.bytes = traffic_.bytes() + channel_.bytes();
  result_.channel_busy = channel_.busy();
  result_.channel_overtakings = channel_.overtakings();
  result_.stopped = steps_.stopped();
  return std::move(result_);
}

void Simulator::dispatch(const Due& due) {
  switch (due.kind) {
    case Due::Kind::kCompute:
      return on_computed(NodeId(due.index));
    case Due::Kind::kWorkDone:
      return on_work_done(due.index);
    case Due::Kind::kThreadFree:
      return deliver(traffic_.on_thread_free(due.index, now_));
    case Due::Kind::kCoresFree:
      while (const auto over = cores_.take_finished(HostId(due.index), now_)) {
        dispatch(*over);
      }
      return;
    case Due::Kind::kEgressFree:
      return on_egress_free(HostId(due.index));
    case Due::Kind::kReached:
      return traffic_.on_reached(due.index, now_);
    case Due::Kind::kArrived:
      return deliver(traffic_.on_arrived(due.index, now_));
    case Due::Kind::kChannelFree:
      return on_channel_free();
    case Due::Kind::kFault:
      return disturbances_.on_fault(due.index, now_);
    case Due::Kind::kFaultOver:
      return on_lost(disturbances_.on_fault_over(due.index));
  }
}

void Simulator::settle() {
  steps_.begin(now_);
  if (ending_.empty()) {
    return;
  }
  for (const NodeId worker : std::exchange(ending_, {})) {
    deliver_event(host_of(worker), Ended{worker, workers_[worker.index()].iteration()});
  }
}

void Simulator::note(NodeId id) {
  steps_.note(id);
  if (VirtualWorker& worker = workers_[id.index()]; worker.ends()) {
    ending_.push_back(id);
  }
}

void Simulator::deliver_event(HostId host, const Event& event) {
  if (disturbances_.is_dead(host)) {
    return;
  }
  setup_.hosts[host.index()]->handle(event, *this);
}

// ---- compute ------------------------------------------------------------------------------------

void Simulator::release(NodeId worker, LayerId layer, Iteration iteration) {
  workers_[worker.index()].release(layer, iteration);
  note(worker);
  if (paces_[worker.index()].waiting) {
    try_compute(worker);
  }
}

void Simulator::try_compute(NodeId id) {
  VirtualWorker& worker = workers_[id.index()];
  Pace& pace = paces_[id.index()];
  if (!worker.can_begin()) {
    if (!pace.waiting) {
      pace.since = now_;
      pace.waiting = true;
    }
    return;
  }
  const auto [pass, layer, usual_length] = worker.next();
  if (worker.at_start_of_iteration()) {
    pace.slowdown = compute_pace_.slowdown(id.index(), worker.iteration());
  }
  const Duration length = disturbances_.slowed(host_of(id), usual_length, pace.slowdown);
  if (pace.waiting && pace.since < now_ && setup_.observer != nullptr) {
    setup_.observer->waited(id, layer, worker.iteration(), pace.since, now_);
  }
  pace.since = now_;
  pace.waiting = false;
  if (worker.at_start_of_iteration()) {
    Time& start = result_.starts[static_cast<std::size_t>(worker.iteration())];
    start = std::max(start, now_);
    if (worker.finished()) {
      return;
    }
  }
  cores_.run(host_of(id), {Due::Kind::kCompute, static_cast<std::uint32_t>(id.index())}, length,
             setup_.cluster.compute_cores, now_);
}

void Simulator::on_computed(NodeId id) {
  VirtualWorker& worker = workers_[id.index()];
  const auto [pass, layer, length] = worker.next();
  const Iteration iteration = worker.iteration();
  if (setup_.observer != nullptr) {
    setup_.observer->computed(id, layer, iteration, pass, paces_[id.index()].since, now_);
  }
  if (pass == Pass::kBackward && layer.index() + 1 == setup_.profile.layers.size()) {
    steps_.finish(id);
  }
  worker.advance();
  note(id);
  try_compute(id);
  if (pass == Pass::kBackward) {
    deliver_event(host_of(id), GradientReady{id, layer, iteration});
    if (layer.index() == 0) {
      deliver_event(host_of(id), BackwardDone{id, iteration});
      steps_.report(id, iteration, now_);
    }
  }
}

// ---- network ------------------------------------------------------------------------------------

void Simulator::send(const Message& message, Payload payload) {
  if (message.kind == MessageKind::kAllReduce) {
    channel_.join(message);
    return pump_channel();
  }
  // What must be returned is returned when it has left, so a copy is in flight. All else is lent:
  // its sender does not change it before it has been used.
  traffic_.send(message, message.wants_return ? Numbers::snapshot(payload) : std::move(payload),
                now_);
}

void Simulator::on_egress_free(HostId host) {
  if (const auto* const departure = traffic_.on_egress_free(host)) {
    if (setup_.observer != nullptr) {
      setup_.observer->sent(departure->message, departure->begin, now_);
    }
    confirm(departure->message);
  }
  traffic_.pump_egress(host, now_);
}

// What is confirmed or delivered may be overwritten as soon as a host handles an event.
void Simulator::confirm(const Message& message) {
  const HostId host = host_of(message.from);
  if (disturbances_.is_lost(host_of(message.to))) {
    return;
  }
  const Event sent = Sent{message};
  deliver_event(host, sent);
  if (const Message& confirmed = std::get<Sent>(sent).message; confirmed.wants_return) {
    deliver_event(host, Returned{confirmed});
  }
}

void Simulator::deliver(Traffic::Transit* transit) {
  if (transit == nullptr) {
    return;
  }
  const Time begin = transit->ingress_begin;
  const Event event = Received{transit->message, std::move(transit->payload)};
  const auto& [message, payload] = std::get<Received>(event);
  const HostId host = host_of(message.to);
  const bool local = host_of(message.from) == host;
  if (disturbances_.is_dead(host) || disturbances_.is_lost(host_of(message.from))) {
    return;
  }
  if (traffic_.is_beside(message)) {
    confirm(message);
  } else if (!local && setup_.observer != nullptr) {
    setup_.observer->received(message, begin, now_);
  }
  if (setup_.numbers != nullptr) {
    numbers_.land(message.to, setup_.hosts[host.index()]->landing(message), payload);
  }
  deliver_event(host, event);
  if (local && message.wants_return) {
    deliver_event(host, Returned{message});
  }
}

void Simulator::start(Work work) {
  const HostId host = host_of(work.node);
  const Duration length = disturbances_.slowed(host, work_time(work, setup_.cluster));
  const auto slot = doings_.put({std::move(work), now_});
  cores_.run(host, {Due::Kind::kWorkDone, slot}, length, 1, now_);
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

std::optional<HostId> Simulator::host_of(const Due& due) const {
  if (due.kind == Due::Kind::kCompute) {
    return host_of(NodeId(due.index));
  }
  return due.kind == Due::Kind::kWorkDone ? host_of(doings_[due.index].work.node)
                                          : traffic_.host_of(due);
}

void Simulator::on_lost(std::optional<HostId> lost) {
  if (!lost) {
    return;
  }
  for (std::size_t h = 0; h < setup_.hosts.size(); ++h) {
    if (HostId(h) != *lost) {
      deliver_event(HostId(h), PeerLost{*lost});
    }
  }
  result_.lost.push_back(*lost);
  if (setup_.ends_after_loss && !result_.ended_at) {
    end_together();
  }
}

// At the first iteration that none of those that are left has begun.
void Simulator::end_together() {
  Iteration end = 0;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const bool has_begun = !paces_[w].waiting || !workers_[w].at_start_of_iteration();
    if (!disturbances_.is_dead(host_of(NodeId(w)))) {
      end = std::max(end, workers_[w].iteration() + (has_begun ? 1 : 0));
    }
  }
  result_.ended_at = std::min(end, setup_.iterations);
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].end_at(*result_.ended_at);
    note(NodeId(w));
  }
}

// ---- the all-reduce channel ---------------------------------------------------------------------

void Simulator::pump_channel() {
  if (const auto end = channel_.begin(now_)) {
    due_.free_at(*end, {Due::Kind::kChannelFree, 0});
  }
}

void Simulator::on_channel_free() {
  const auto [request, begin] = channel_.end();
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

SimulationResult simulate(const Simulation& simulation) { return Simulator(simulation).run(); }

}  // namespace sluice
