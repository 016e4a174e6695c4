#pragma once

#include <memory>
#include <vector>

#include "drivers/realtime/loan.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/transport.h"
#include "model/topology.h"

namespace sluice {

// Hosts that are threads of one process: a message is a reference to the sender's memory.
class ThreadTransport final : public Transport {
 public:
  explicit ThreadTransport(const Topology& topology) : topology_(topology) {
    for (std::size_t h = 0; h < topology.hosts(); ++h) {
      mailboxes_.push_back(std::make_shared<Mailbox>(nullptr, open_));
    }
  }

  // Of all mailboxes.
  OpenEvents& open_events() { return *open_; }
  Mailbox& mailbox(HostId host) { return *mailboxes_[host.index()]; }

  void send(const Message& message, Payload payload) override {
    const auto& lender = mailboxes_[topology_.host_of(message.from).index()];
    mailbox_of(message.to).post(Received{message, lend(message, std::move(payload), lender)});
  }

  void accepted(const Message& message) override {
    if (topology_.host_of(message.from) != topology_.host_of(message.to)) {
      mailbox_of(message.from).post(Sent{message});
    }
  }

  // Nothing is pending: send() completes every hand-over.
  bool progress(Landing& /*landing*/) override { return false; }
  bool is_busy() const override { return false; }
  std::optional<Duration> patience() const override { return std::nullopt; }

 private:
  Mailbox& mailbox_of(NodeId node) { return mailbox(topology_.host_of(node)); }

  Topology topology_;
  std::shared_ptr<OpenEvents> open_ = std::make_shared<OpenEvents>();
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace sluice
