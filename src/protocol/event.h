#pragma once

#include <variant>

#include "base/id.h"
#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// What can happen to a node. A host handles its events one at a time.

// The worker begins to train, or to train further, with this iteration: it has its parameters, and
// computes with them. A host hears of its workers' starts before anything else.
struct Started {
  NodeId node;
  Iteration iteration = 0;
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
// The worker has the parameters of this iteration and does not begin it: it has ended, or rests
// until it is started again. Meanwhile it does not compute with its parameters.
struct Ended {
  NodeId worker;
  Iteration iteration = 0;
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
// A host has gone, with all its nodes, for the rest of the phase. Every other host hears of it
// once, not all at the same time. From then on nothing comes from that host, and messages to it are
// neither Sent nor Returned.
struct PeerLost {
  HostId host;
};
// A host that was lost is there again, with new nodes, whose workers begin with this iteration. All
// that have gone on without it hear of it at the beginning of a phase, before anything else.
struct PeerJoined {
  HostId host;
  Iteration iteration = 0;
};

using Event = std::variant<Started, GradientReady, BackwardDone, Ended, Received, Sent, Returned,
                           Finished, PeerLost, PeerJoined>;

}  // namespace sluice
