#pragma once

#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// A pure state machine: no clock, no thread, no socket, no float. The same object runs on threads,
// on MPI and in virtual time. A node is one, and a host that bundles its nodes is one too.
class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual void handle(const Event& event, Effects& effects) = 0;
  // Where the payload of an incoming message belongs, so that the driver can put it there without
  // a detour; kNone hands it over with the event.
  virtual BufferRange landing(const Message& message) const = 0;
};

}  // namespace sluice
