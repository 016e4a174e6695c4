#include "runtime/host_loop.h"

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace sluice {

void HostLoop::add(NodeId node, Workspace& workspace, Gate* gate) {
  nodes_.emplace(node, Node{workspace, gate});
}

void HostLoop::run() {
  for (;;) {
    world_.mailbox.drain(events_);
    while (!events_.empty()) {
      const Event event = std::move(events_.front());
      events_.pop_front();
      handle(event);
    }
    if (!works_.empty()) {
      do_work();
    } else if (!world_.mailbox.wait(events_)) {
      return;
    }
  }
}

void HostLoop::handle(const Event& event) {
  if (const auto* received = std::get_if<Received>(&event)) {
    return receive(*received);
  }
  if (const auto* sent = std::get_if<Sent>(&event); sent != nullptr && world_.observer != nullptr) {
    observe_sent(sent->message);
  }
  world_.protocol.handle(event, *this);
}

void HostLoop::receive(const Received& event) {
  const Time begin = world_.clock.now();
  const BufferRange where = world_.protocol.landing(event.message);
  if (where.buffer != Buffer::kNone) {
    nodes_.at(event.message.to).workspace.land(where, event.payload);
  }
  world_.transport.accepted(event.message);
  if (world_.observer != nullptr) {
    world_.observer->received(event.message, begin, world_.clock.now());
  }
  world_.protocol.handle(event, *this);
}

void HostLoop::do_work() {
  Work work = std::move(works_.front());
  works_.pop_front();
  const Time begin = world_.clock.now();
  Payload output = nodes_.at(work.node).workspace.execute(work);
  if (world_.observer != nullptr) {
    world_.observer->worked(work, begin, world_.clock.now());
  }
  work.sources.clear();
  events_.push_back(Finished{std::move(work), std::move(output)});
}

void HostLoop::send(const Message& message, Payload payload) {
  if (world_.observer != nullptr) {
    in_flight_.emplace_back(message, world_.clock.now());
  }
  world_.transport.send(message, std::move(payload));
}

void HostLoop::observe_sent(const Message& message) {
  const auto flight = std::find_if(in_flight_.begin(), in_flight_.end(),
                                   [&](const auto& f) { return f.first == message; });
  check(flight != in_flight_.end(), "only what was sent is confirmed");
  world_.observer->sent(message, flight->second, world_.clock.now());
  in_flight_.erase(flight);
}

void HostLoop::start(Work work) { works_.push_back(std::move(work)); }

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
