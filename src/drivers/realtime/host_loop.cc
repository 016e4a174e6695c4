#include "drivers/realtime/host_loop.h"

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace sluice {
namespace {

// What a driver reports of work that is done; the memory behind the sources is free.
Finished finished(Work work, Payload output) {
  work.sources.clear();
  return {std::move(work), std::move(output)};
}

}  // namespace

HostLoop::HostLoop(const Phase& phase, HostId host, const World& world)
    : world_(world),
      strategy_(phase.strategy),
      protocol_(*phase.hosts[host.index()]),
      clock_(phase.clock),
      observer_(phase.observer) {
  for (const NodeId node : phase.topology.nodes_on(host)) {
    Gate* gate = nullptr;
    if (phase.topology.is_worker(node)) {
      gate = &world_.gates.try_emplace(node, phase.chunks.layers(), phase.start_of(node))
                  .first->second;
    }
    nodes_.try_emplace(node, phase.state.workspace(node), gate);
  }
  const int computing = world_.offloading ? world_.offloading->threads : 0;
  const int waiting = strategy_.learners_factor() ? 1 : 0;  // for a device
  if (computing + waiting > 0) {
    aside_.emplace(computing + waiting, phase.start);
  }
}

void HostLoop::run() {
  while (turn() || rest()) {
  }
}

bool HostLoop::turn() {
  world_.mailbox.drain(events_);
  while (!events_.empty()) {
    const Event event = std::move(events_.front());
    events_.pop_front();
    handle(event);
  }
  const bool worked = !works_.empty();
  if (worked) {
    do_work();
  }
  if (aside_) {
    aside_->rethrow();
  }
  const bool moved = world_.transport.progress(*this);
  return worked || moved;
}

bool HostLoop::rest(std::optional<Duration> limit) {
  world_.mailbox.settle();
  if (limit == Duration(0)) {
    return world_.mailbox.drain(events_) || finish_aside();
  }
  std::optional<Duration> patience = world_.transport.patience();
  if (limit) {
    patience = std::min(*limit, patience.value_or(*limit));
  }
  return world_.mailbox.wait(events_, patience) || finish_aside();
}

bool HostLoop::finish_aside() {
  if (aside_) {
    aside_->finish();
    world_.mailbox.drain(events_);
  }
  return !events_.empty();
}

void HostLoop::handle(const Event& event) {
  const std::lock_guard lock(in_protocol_);
  if (const auto* received = std::get_if<Received>(&event)) {
    return receive(*received);
  }
  if (const auto* sent = std::get_if<Sent>(&event); sent != nullptr && observer_ != nullptr) {
    observe_sent(sent->message);
  }
  protocol_.handle(event, *this);
}

std::span<float> HostLoop::place(const Message& message) {
  const std::lock_guard lock(in_protocol_);
  if (observer_ != nullptr) {
    arriving_.emplace_back(message, clock_.now());
  }
  const BufferRange where = protocol_.landing(message);
  return where.buffer == Buffer::kNone ? std::span<float>()
                                       : nodes_.at(message.to).workspace.view(where);
}

void HostLoop::receive(const Received& event) {
  const Time begin = take(arriving_, event.message).value_or(clock_.now());
  const BufferRange where = protocol_.landing(event.message);
  if (where.buffer != Buffer::kNone) {
    const Workspace& workspace = nodes_.at(event.message.to).workspace;
    if (workspace.view(where).data() != event.payload.values().data()) {
      workspace.land(where, event.payload);
    }
  }
  world_.transport.accepted(event.message);
  if (observer_ != nullptr) {
    observe_received(event.message, begin);
  }
  protocol_.handle(event, *this);
}

// A native sum leaves and arrives at once, and counts as sent.
void HostLoop::observe_received(const Message& message, Time begin) {
  if (message.kind == MessageKind::kAllReduce) {
    observer_->sent(message, begin, clock_.now());
  } else {
    observer_->received(message, begin, clock_.now());
  }
}

void HostLoop::do_work() {
  Work work = std::move(works_.front());
  works_.pop_front();
  const Time begin = clock_.now();
  Payload output = execute(work);
  observe_work(work, begin);
  events_.push_back(finished(std::move(work), std::move(output)));
}

Payload HostLoop::execute(const Work& work) {
  Node& node = nodes_.at(work.node);
  WorkInParts doing = node.workspace.begin(work, 1);
  prepare(node, doing);
  do {
    node.workspace.do_part(doing, 0);
  } while (node.workspace.more(doing));
  return std::move(doing.output);
}

void HostLoop::prepare(Node& node, WorkInParts& doing) {
  const std::lock_guard lock(node.preparing);
  node.workspace.prepare(doing);
}

void HostLoop::observe_work(const Work& work, Time begin) {
  if (observer_ != nullptr) {
    const std::lock_guard lock(observing_work_);
    observer_->worked(work, begin, clock_.now());
  }
}

void HostLoop::send(const Message& message, Payload payload) {
  if (observer_ != nullptr && !nodes_.contains(message.to)) {
    in_flight_.emplace_back(message, clock_.now());
  }
  world_.transport.send(message, std::move(payload));
}

void HostLoop::observe_sent(const Message& message) {
  const auto begin = take(in_flight_, message);
  check(begin.has_value(), "only what was sent is confirmed");
  observer_->sent(message, *begin, clock_.now());
}

std::optional<Time> HostLoop::take(Flights& flights, const Message& message) {
  const auto flight = std::find_if(flights.begin(), flights.end(),
                                   [&](const auto& f) { return f.first == message; });
  if (flight == flights.end()) {
    return std::nullopt;
  }
  const Time begin = flight->second;
  flights.erase(flight);
  return begin;
}

void HostLoop::start(Work work) {
  if (waits_for_device(strategy_, work)) {
    start_waiting(std::move(work));
  } else if (world_.offloading && goes_aside(work)) {
    start_aside(std::move(work));
  } else {
    works_.push_back(std::move(work));
  }
}

// Only work that touches nothing but its range.
bool HostLoop::goes_aside(const Work& work) const {
  const std::int64_t shortest =
      world_.transport.is_busy() ? world_.offloading->while_busy : world_.offloading->while_idle;
  return work.range.size() >= shortest && nodes_.at(work.node).workspace.stands_alone(work);
}

// A work that other threads do, with all that they share.
struct HostLoop::Aside {
  Aside(Work done, Node& its, std::int64_t parts)
      : work(std::move(done)), node(its), doing(its.workspace.begin(work, parts)) {}

  Work work;
  Node& node;
  WorkInParts doing;
  std::mutex mutex;
  std::size_t left = 0;  // parts of this pass
  std::optional<Time> begin;
};

void HostLoop::start_aside(Work work) {
  const std::int64_t parts = world_.offloading->parts_of(work.range.size());
  Node& node = nodes_.at(work.node);
  world_.mailbox.expect();
  start_pass(std::make_shared<Aside>(std::move(work), node, parts));
}

void HostLoop::start_pass(const std::shared_ptr<Aside>& aside) {
  const std::size_t parts = aside->doing.parts.size();
  aside->left = parts;
  for (std::size_t p = 0; p < parts; ++p) {
    do_aside([this, aside, p] { do_part(aside, p); });
  }
}

template <class Task>
void HostLoop::do_aside(Task task) {
  aside_->start([this, task = std::move(task)] {
    try {
      task();
    } catch (...) {
      world_.mailbox.close();  // wakes the loop
      throw;
    }
  });
}

void HostLoop::start_waiting(Work work) {
  Node& node = nodes_.at(work.node);
  world_.mailbox.expect();
  const std::lock_guard lock(node.gathering);
  node.waiting.push_back(std::move(work));
  if (!std::exchange(node.waits, true)) {
    do_aside([this, &node] { do_waiting(node); });
  }
}

void HostLoop::do_waiting(Node& node) {
  for (;;) {
    std::vector<Work> works;
    {
      const std::lock_guard lock(node.gathering);
      works.swap(node.waiting);
      if (works.empty()) {
        node.waits = false;
        return;
      }
    }
    const Time begin = clock_.now();
    node.workspace.do_together(works);
    for (Work& work : works) {
      observe_work(work, begin);
      world_.mailbox.post_expected(finished(std::move(work), {}));
    }
  }
}

// Whoever does the last part goes on with the work, or reports it. It counts as having begun with
// the first part.
void HostLoop::do_part(const std::shared_ptr<Aside>& aside, std::size_t part) {
  {
    const std::lock_guard lock(aside->mutex);
    if (!aside->begin) {
      aside->begin = clock_.now();
      prepare(aside->node, aside->doing);
    }
  }
  aside->node.workspace.do_part(aside->doing, part);
  {
    const std::lock_guard lock(aside->mutex);
    if (--aside->left > 0) {
      return;
    }
  }
  if (aside->node.workspace.more(aside->doing)) {
    return start_pass(aside);
  }
  observe_work(aside->work, *aside->begin);
  world_.mailbox.post_expected(finished(std::move(aside->work), std::move(aside->doing.output)));
}

void HostLoop::release(NodeId worker, LayerId layer, Iteration iteration) {
  nodes_.at(worker).gate->release(layer, iteration);
}

Payload HostLoop::borrow(NodeId node, const BufferRange& what) {
  return {nodes_.at(node).workspace.view(what), nullptr};
}

Payload HostLoop::copy(NodeId node, const BufferRange& what) {
  const auto view = nodes_.at(node).workspace.view(what);
  return Payload::owning(std::vector<float>(view.begin(), view.end()));
}

}  // namespace sluice
