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

// Part of the work on a range, without memory of its own: the whole must outlive it.
Work part_of(const Work& whole, std::int64_t parts, std::int64_t index) {
  Work part = whole;
  part.range = part_of(whole.range, parts, index);
  const auto begin = static_cast<std::size_t>(part.range.begin - whole.range.begin);
  for (Payload& source : part.sources) {
    check(source.size() == whole.range.size() * kFloatBytes, "a source covers its range");
    source = {source.values().subspan(begin, static_cast<std::size_t>(part.range.size())), nullptr};
  }
  return part;
}

}  // namespace

HostLoop::HostLoop(const Phase& phase, HostId host, const World& world)
    : world_(world),
      protocol_(*phase.hosts[host.index()]),
      clock_(phase.clock),
      observer_(phase.observer) {
  for (const NodeId node : phase.topology.nodes_on(host)) {
    Gate* gate = nullptr;
    if (phase.topology.is_worker(node)) {
      gate = &world_.gates.try_emplace(node, phase.chunks.layers(), phase.first).first->second;
    }
    nodes_.emplace(node, Node{phase.state.workspace(node), gate});
  }
  if (world_.offloading) {
    aside_.emplace(world_.offloading->threads, phase.start);
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

Payload HostLoop::execute(const Work& work) { return nodes_.at(work.node).workspace.execute(work); }

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
  if (aside_ && goes_aside(work)) {
    start_aside(std::move(work));
  } else {
    works_.push_back(std::move(work));
  }
}

// Only work that touches nothing but its range, element by element, and has no output; a codec has
// state of its own.
bool HostLoop::goes_aside(const Work& work) const {
  const std::int64_t shortest =
      world_.transport.is_busy() ? world_.offloading->while_busy : world_.offloading->while_idle;
  const bool alone = work.kind == WorkKind::kUpdate || work.kind == WorkKind::kSum ||
                     work.kind == WorkKind::kReduce;
  return alone && !work.coded && work.range.size() >= shortest;
}

// Whoever does the last part reports the work. It counts as having begun with the first part.
void HostLoop::start_aside(Work work) {
  struct Whole {
    Work work;
    std::int64_t left;
    std::optional<Time> begin = std::nullopt;
    std::mutex mutex = {};
  };
  const bool in_parts =
      work.kind != WorkKind::kUpdate || nodes_.at(work.node).workspace.updates_in_parts();
  const std::int64_t parts = in_parts ? world_.offloading->parts_of(work.range.size()) : 1;
  world_.mailbox.expect();
  const std::shared_ptr<Whole> whole(new Whole{std::move(work), parts});
  for (std::int64_t p = 0; p < parts; ++p) {
    aside_->start([this, whole, parts, p] {
      try {
        {
          const std::lock_guard lock(whole->mutex);
          whole->begin = whole->begin.value_or(clock_.now());
        }
        execute(part_of(whole->work, parts, p));
        const std::lock_guard lock(whole->mutex);
        if (--whole->left == 0) {
          observe_work(whole->work, *whole->begin);
          world_.mailbox.post_expected(finished(std::move(whole->work), {}));
        }
      } catch (...) {
        world_.mailbox.close();  // wakes the loop
        throw;
      }
    });
  }
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
