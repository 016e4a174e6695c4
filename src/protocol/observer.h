#pragma once

#include "base/id.h"
#include "base/units.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

enum class Pass : bool { kForward, kBackward };
// A copy between the memory of a host and that of an accelerator.
enum class Passage : bool { kToDevice, kFromDevice };

// Sees what a driver does, in real and in virtual time. Calls for one host come from one thread at
// a time, with two exceptions: computed(), waited() and copied() are called by the worker's own
// thread, and worked() by any thread, one call at a time.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                        Time end) = 0;
  // The worker waited before this layer's forward pass: this communication was exposed.
  virtual void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) = 0;
  // A layer's parameters were copied to the worker's accelerator, or its gradients back.
  virtual void copied(NodeId /*worker*/, LayerId /*layer*/, Iteration /*iteration*/,
                      Passage /*passage*/, Time /*begin*/, Time /*end*/) {}
  // From handing the message to the network until the network has taken all of it.
  virtual void sent(const Message& message, Time begin, Time end) = 0;
  // From the first byte until the node gets the message.
  virtual void received(const Message& message, Time begin, Time end) = 0;
  virtual void worked(const Work& work, Time begin, Time end) = 0;
};

}  // namespace sluice
