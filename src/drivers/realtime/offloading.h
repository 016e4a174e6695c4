#pragma once

#include <cstdint>

namespace sluice {

// Which arithmetic is done on a thread beside a host's loop: updates with plain gradients of at
// least so many parameters. Handing one over costs two switches of thread; doing it in the loop
// holds up the messages.
struct Offloading {
  std::int64_t while_busy = 32'768;   // while messages in flight stand still without the loop
  std::int64_t while_idle = 262'144;  // else only what comes next would wait
};

}  // namespace sluice
