#pragma once

#include <span>

#include "protocol/effects.h"
#include "protocol/event.h"

namespace sluice {

// A pure state machine: no clock, no thread, no socket, no float. The same object runs on threads,
// on MPI and in virtual time. A node is a protocol, and so is a host, which bundles nodes.
class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual void handle(const Event& event, Effects& effects) = 0;
  // Where the payload of an incoming message belongs, so that the driver can put it there directly.
  // With kNone, the payload comes with the event.
  virtual BufferRange landing(const Message& message) const = 0;
  // Between two phases: with what weight the node's parameters go into means, by chunk; empty if
  // its algorithm has no such weights. They are part of its state, as its parameters are.
  virtual std::span<double> weights() { return {}; }
  // Between two phases: what has come to the node, or was made of that, and is used in a later one,
  // by chunk, and with as many places for each chunk. Most are empty. Part of its state, too.
  virtual std::span<Payload> kept() { return {}; }
  // After a phase in which a worker was lost: by chunk, with the parameters of which iteration the
  // last exchange began whose sum this node has; 0: it has had none. Empty if its algorithm has no
  // sums that a worker can do without.
  virtual std::span<const Iteration> last_sums() const { return {}; }
  // Likewise, the last exchange that this node has begun and whose sum it has given up.
  virtual std::span<const Iteration> sums_given_up() const { return {}; }
};

}  // namespace sluice
