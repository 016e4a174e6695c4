#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "drivers/realtime/transport.h"
#include "wire/message.h"

namespace sluice {

// Messages that a process, or all of them, have sent to other processes and received from them.
struct MessageCount {
  std::int64_t sent = 0;
  std::int64_t received = 0;

  bool operator==(const MessageCount&) const = default;
};

// Carries messages between hosts that are processes. All calls come from the thread of the host's
// loop.
class PeerTransport : public Transport {
 public:
  // A message with a payload, or a sum, in flight.
  struct Transfer {
    Message message;
    bool outgoing;
    Time since;
  };

  // Messages to and from other processes so far, without those that were lost.
  virtual MessageCount count() const = 0;

  // This rank has gone. No event about messages to or from it follows those that are in the mailbox
  // now, and it no longer counts.
  virtual void lose(std::size_t rank) = 0;

  // Call this when nothing is in flight any more in the whole job: the host parts from the others.
  virtual void part() = 0;
  // All have parted, and nothing is in flight.
  virtual bool parted() const = 0;

  // Those to and from each peer stand in the order in which they began.
  virtual std::vector<Transfer> transfers() const = 0;
};

}  // namespace sluice
