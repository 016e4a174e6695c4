#pragma once

#include "base/id.h"
#include "base/units.h"
#include "protocol/payload.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// What a node can do to its world. Nothing here blocks or calls back: every answer is a later
// event.
class Effects {
 public:
  virtual ~Effects() = default;

  // Sends a message. Sent follows if it leaves the host, and Returned if the message wants it:
  // until then the payload is read, so the range behind it must stay as it is.
  virtual void send(const Message& message, Payload payload) = 0;
  // Begins a piece of arithmetic; Finished follows. Until then what it writes belongs to the
  // driver, which may do the work on another thread: the node neither borrows nor copies it. An
  // update also has its parameters to itself: the node starts no other work on them meanwhile.
  virtual void start(Work work) = 0;
  // The worker may run forward through the layer in this iteration.
  virtual void release(NodeId worker, LayerId layer, Iteration iteration) = 0;
  // A view of a node's own buffer, to be sent or worked on.
  virtual Payload borrow(NodeId node, const BufferRange& what) = 0;
  // The same as it is now, free of what happens to the buffer later.
  virtual Payload copy(NodeId node, const BufferRange& what) = 0;
};

}  // namespace sluice
