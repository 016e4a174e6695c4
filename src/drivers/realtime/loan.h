#pragma once

#include <memory>
#include <utility>

#include "drivers/realtime/mailbox.h"

namespace sluice {

// A payload that stays in its sender's memory. If the message asks for its return, the sender's
// host gets an event when the last reader has released it; that may be after the end of a broken
// run.
inline Payload lend(const Message& message, Payload payload,
                    const std::shared_ptr<Mailbox>& lender) {
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
  if (!message.wants_return) {
    return payload;
  }
  auto loan = std::make_shared<Loan>(lender, message, payload);
  return payload.held_by(std::move(loan));
}

}  // namespace sluice
