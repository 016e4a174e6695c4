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

  // For a message whose payload is about to come in. Empty: it belongs nowhere yet and comes with
  // the event.
  virtual std::span<float> place(const Message& message) = 0;
};

// Carries messages between hosts; what comes of them arrives in the hosts' mailboxes. All calls
// but that of the constructor come from the threads of the hosts' loops.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void send(const Message& message, Payload payload) = 0;
  // The receiving host has taken the message over: its sender may have the credit back.
  virtual void accepted(const Message& message) = 0;
  // Moves on what is in flight; true if anything moved. A loop calls it after every piece of work
  // and whenever its patience has run out.
  virtual bool progress(Landing& landing) = 0;
  // Whether anything is in flight that stands still while nobody calls progress().
  virtual bool is_busy() const = 0;
  // How long a loop without work may sleep if nothing comes into its mailbox; none: for ever.
  virtual std::optional<Duration> patience() const = 0;
};

}  // namespace sluice
