#pragma once

#include <variant>

#include "base/id.h"
#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// What can happen to a node. Events of one host are handled one at a time.

// The run begins, or goes on: the parameters of the job's first iteration are in place on every
// node.
struct Started {
  NodeId node;
};
// The gradient of this layer is final.
struct GradientReady {
  NodeId worker;
  LayerId layer;
  Iteration iteration;
};
// All layers of this iteration have been reported; the worker is about to begin the next one.
struct BackwardDone {
  NodeId worker;
  Iteration iteration;
};
// If the protocol named a landing for the message, the payload lies there already.
struct Received {
  Message message;
  Payload payload;
};
// The network has taken the message: its credit is free again.
struct Sent {
  Message message;
};
// The payload of a message that wanted its return may be overwritten.
struct Returned {
  Message message;
};
// A piece of work is done; its sources have been let go.
struct Finished {
  Work work;
  Payload output;
};

using Event =
    std::variant<Started, GradientReady, BackwardDone, Received, Sent, Returned, Finished>;

}  // namespace sluice
