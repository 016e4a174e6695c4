#pragma once

#include <optional>
#include <span>

#include "base/units.h"
#include "protocol/payload.h"
#include "wire/message.h"

namespace sluice {

// Where payloads belong on the receiving host.
class Landing {
 public:
  virtual ~Landing() = default;

  // For a message whose payload is about to arrive. Empty: it has no place yet and comes with the
  // event. Any thread may call it, but not during a call of the transport.
  virtual std::span<float> place(const Message& message) = 0;
};

// Carries messages between hosts; events arrive in the hosts' mailboxes. All calls but the
// constructor come from the threads of the hosts' loops.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void send(const Message& message, Payload payload) = 0;
  // The receiving host has taken over the message: its sender may have the credit back.
  virtual void accepted(const Message& message) = 0;
  // Moves what is in flight; true if anything moved. A loop calls it after every unit of work and
  // whenever patience() has run out.
  virtual bool progress(Landing& landing) = 0;
  // Whether anything in flight needs calls of progress() to move.
  virtual bool is_busy() const = 0;
  // How long a loop without work may sleep if nothing arrives in its mailbox; none: forever.
  virtual std::optional<Duration> patience() const = 0;
};

}  // namespace sluice
