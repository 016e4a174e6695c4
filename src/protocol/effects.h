#pragma once

#include "base/id.h"
#include "base/units.h"
#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// What a node can do. Nothing here blocks or calls back: every result comes as a later event.
class Effects {
 public:
  virtual ~Effects() = default;

  // Sends a message. A Sent event follows if the message leaves the host. If it wants_return, a
  // Returned event follows; until then the range behind the payload must not change.
  virtual void send(const Message& message, Payload payload) = 0;
  // Starts arithmetic; a Finished event follows. Until then the ranges that it writes belong to the
  // driver, which may use another thread: the node must neither borrow nor copy them. While an
  // update runs, the node must not start other work on the same parameters.
  virtual void start(Work work) = 0;
  // Permits the worker to run the layer's forward pass in this iteration.
  virtual void release(NodeId worker, LayerId layer, Iteration iteration) = 0;
  // A view of one of the node's own buffers, to send or to work on.
  virtual Payload borrow(NodeId node, const BufferRange& what) = 0;
  // A copy of the same; later changes to the buffer do not affect it.
  virtual Payload copy(NodeId node, const BufferRange& what) = 0;
};

}  // namespace sluice
