#pragma once

#include <variant>

#include "base/id.h"
#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// What can happen to a node. A host handles its events one at a time.

// The run begins or continues: every node has the parameters of the job's first iteration.
struct Started {
  NodeId node;
};
// The gradient of this layer is final.
struct GradientReady {
  NodeId worker;
  LayerId layer;
  Iteration iteration;
};
// All gradients of this iteration have been reported; the worker is about to begin the next one.
struct BackwardDone {
  NodeId worker;
  Iteration iteration;
};
// If the protocol named a landing for the message, the payload is already there.
struct Received {
  Message message;
  Payload payload;
};
// The network has taken the message, which frees its credit. Only hosts hear of it, not nodes.
struct Sent {
  Message message;
};
// The payload of a message with wants_return may be overwritten.
struct Returned {
  Message message;
};
// The work is done and no longer holds its sources.
struct Finished {
  Work work;
  Payload output;
};

using Event =
    std::variant<Started, GradientReady, BackwardDone, Received, Sent, Returned, Finished>;

}  // namespace sluice
