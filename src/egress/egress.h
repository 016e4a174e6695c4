#pragma once

#include <utility>

#include "egress/admission_queue.h"
#include "model/strategy.h"
#include "protocol/effects.h"

namespace sluice {

// All that leaves a host: ordered by the strategy, bounded by credit. The credit counts payload
// bytes handed to the network and not yet confirmed, so that an urgent message waits for at most
// that much.
class Egress {
 public:
  explicit Egress(const Strategy& strategy) : queue_(strategy.order, strategy.credit) {}

  void send(const Message& message, Payload payload, Effects& network) {
    queue_.push(urgency(message.iteration, message.priority), message.payload_bytes,
                {message, std::move(payload)});
    pump(network);
  }

  void on_sent(const Message& message, Effects& network) {
    queue_.give_back(message.payload_bytes);
    pump(network);
  }

  Bytes in_flight() const { return queue_.spent(); }
  std::size_t waiting() const { return queue_.waiting(); }
  std::int64_t overtakings() const { return queue_.overtakings(); }

 private:
  void pump(Effects& network) {
    while (auto next = queue_.take()) {
      network.send(next->first, std::move(next->second));
    }
  }

  AdmissionQueue<std::pair<Message, Payload>> queue_;
};

}  // namespace sluice
