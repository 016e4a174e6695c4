#pragma once

#include "protocol/payload.h"
#include "wire/message.h"

namespace sluice {

// Carries messages between hosts; what comes of them arrives in the hosts' mailboxes.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void send(const Message& message, Payload payload) = 0;
  // The receiving host has taken the message over: its sender may have the credit back.
  virtual void accepted(const Message& message) = 0;
};

}  // namespace sluice
