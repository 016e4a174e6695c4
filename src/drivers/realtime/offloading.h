#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

// Which arithmetic runs on threads beside a host's loop: updates, sums, packing and unpacking of at
// least this many parameters. Handing one over costs two thread switches; doing it in the loop
// holds up the messages.
struct Offloading {
  std::int64_t while_busy = 32'768;   // while messages in flight need the loop to move
  std::int64_t while_idle = 262'144;  // otherwise only the next message would wait
  int threads = 1;
  // Long work is spread over the threads, in parts of at least this many parameters.
  std::int64_t min_part = 65'536;

  std::int64_t parts_of(std::int64_t params) const {
    return std::clamp<std::int64_t>(params / min_part, 1, threads);
  }
};

}  // namespace sluice
