#pragma once

#include "base/id.h"
#include "base/units.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

enum class Pass : bool { kForward, kBackward };
// Between the memory of a host and that of an accelerator.
enum class Passage : bool { kToDevice, kFromDevice };

// Sees what a driver does, in real and in virtual time alike. Calls for one host come from one
// thread at a time, except those of computed(), waited() and copied(), which come from the worker's
// own, and those of worked(), which come one at a time from any.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                        Time end) = 0;
  // The worker stood still before this layer's forward pass: communication that nothing hid.
  virtual void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) = 0;
  // A layer's parameters on their way to the worker's accelerator, or its gradients back.
  virtual void copied(NodeId /*worker*/, LayerId /*layer*/, Iteration /*iteration*/,
                      Passage /*passage*/, Time /*begin*/, Time /*end*/) {}
  // From the hand-over to the network until it has taken all of it.
  virtual void sent(const Message& message, Time begin, Time end) = 0;
  // From the first byte until the message is handed to its node.
  virtual void received(const Message& message, Time begin, Time end) = 0;
  virtual void worked(const Work& work, Time begin, Time end) = 0;
};

}  // namespace sluice
