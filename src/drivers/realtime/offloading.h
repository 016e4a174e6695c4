#pragma once

#include <cstdint>

namespace sluice {

// Which arithmetic runs on a thread beside a host's loop: updates with plain gradients of at least
// this many parameters. Handing one over costs two thread switches; doing it in the loop holds up
// the messages.
struct Offloading {
  std::int64_t while_busy = 32'768;   // while messages in flight need the loop to move
  std::int64_t while_idle = 262'144;  // otherwise only the next message would wait
};

}  // namespace sluice
