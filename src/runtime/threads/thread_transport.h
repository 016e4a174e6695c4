#pragma once

#include <memory>
#include <vector>

#include "model/topology.h"
#include "runtime/mailbox.h"
#include "runtime/transport.h"

namespace sluice {

// Hosts that are threads of one process: a message is a reference to the sender's memory.
class ThreadTransport final : public Transport {
 public:
  explicit ThreadTransport(const Topology& topology) : topology_(topology) {
    for (std::size_t h = 0; h < topology.hosts(); ++h) {
      mailboxes_.push_back(std::make_shared<Mailbox>());
    }
  }

  Mailbox& mailbox(HostId host) { return *mailboxes_[host.index()]; }

  void send(const Message& message, Payload payload) override {
    if (message.wants_return) {
      auto loan = std::make_shared<Loan>(mailboxes_[topology_.host_of(message.from).index()],
                                         message, payload);
      payload = payload.held_by(std::move(loan));
    }
    mailbox_of(message.to).post(Received{message, std::move(payload)});
  }

  void accepted(const Message& message) override {
    if (topology_.host_of(message.from) != topology_.host_of(message.to)) {
      mailbox_of(message.from).post(Sent{message});
    }
  }

 private:
  // Tells the lender when the last reader has let go; that may be after the end of a broken run.
  class Loan {
   public:
    Loan(std::shared_ptr<Mailbox> lender, const Message& message, Payload payload)
        : lender_(std::move(lender)), message_(message), payload_(std::move(payload)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { lender_->post(Returned{message_}); }

   private:
    std::shared_ptr<Mailbox> lender_;
    Message message_;
    Payload payload_;
  };

  Mailbox& mailbox_of(NodeId node) { return mailbox(topology_.host_of(node)); }

  Topology topology_;
  std::vector<std::shared_ptr<Mailbox>> mailboxes_;
};

}  // namespace sluice
