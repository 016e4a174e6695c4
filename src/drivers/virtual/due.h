#pragma once

#include <cstdint>

#include "drivers/virtual/event_queue.h"

namespace sluice {

// An event of the simulator; `index` is a worker, a host, a fault, or a slot of what is in flight.
struct Due {
  enum class Kind : std::uint8_t {
    kCompute,      // a worker's step is over
    kWorkDone,     // some arithmetic is done
    kThreadFree,   // a host's message thread is done with a message
    kCoresFree,    // something that runs on a host's cores is over
    kEgressFree,   // a host's interface has sent a fragment
    kReached,      // the first byte of a fragment is at its next hop
    kArrived,      // a message is at its host
    kChannelFree,  // the all-reduce channel is done with a chunk
    kFault,        // a fault begins
    kFaultOver,    // it ends; of a kill: the others hear of it
  };
  Kind kind;
  std::uint32_t index;
};

using DueQueue = EventQueue<Due>;

}  // namespace sluice
