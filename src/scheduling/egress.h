#pragma once

#include <utility>

#include "model/strategy.h"
#include "model/topology.h"
#include "protocol/effects.h"
#include "scheduling/admission_queue.h"

namespace sluice {

// Everything that leaves a host, ordered by the strategy and limited by credit. The credit counts
// payload bytes handed to the network and not yet confirmed, so an urgent message waits for at most
// that much. It applies only with order priority; otherwise nothing is urgent. Each peer has a
// credit too: a slow peer does not delay the others, and few senders load one receiver at a time.
class Egress {
 public:
  Egress(const Strategy& strategy, const Topology& topology)
      : topology_(topology),
        queue_(strategy.order, strategy.order == Order::kPriority ? strategy.credit : kUnbounded,
               topology.hosts(), strategy.peer_credit) {}

  void send(const Message& message, Payload payload, Effects& network) {
    const std::size_t lane = lane_of(message);
    if (queue_.admit_at_once(message.payload_bytes, lane)) {
      return network.send(message, std::move(payload));
    }
    queue_.push(urgency(message.iteration, message.priority), message.payload_bytes,
                {message, std::move(payload)}, lane);
    pump(network);
  }

  void on_sent(const Message& message, Effects& network) {
    queue_.give_back(message.payload_bytes, lane_of(message));
    pump(network);
  }

  // The host is gone: what waits for it is dropped, and its credit is free.
  void drop(HostId host, Effects& network) {
    queue_.clear(host.index());
    pump(network);
  }

  Bytes in_flight() const { return queue_.spent(); }
  std::size_t waiting() const { return queue_.waiting(); }
  std::int64_t overtakings() const { return queue_.overtakings(); }
  // Counts no overtakings of earlier iterations.
  void count_from(Iteration iteration) { queue_.count_from(urgency(iteration, 0)); }

 private:
  static constexpr Bytes kUnbounded = AdmissionQueue<Message>::kUnbounded;

  std::size_t lane_of(const Message& message) const {
    return topology_.host_of(message.to).index();
  }

  void pump(Effects& network) {
    while (auto* const next = queue_.next()) {
      network.send(next->first, std::move(next->second));
    }
  }

  Topology topology_;
  AdmissionQueue<std::pair<Message, Payload>> queue_;
};

}  // namespace sluice
