#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "drivers/realtime/start_thread.h"

namespace sluice::testing {

// Starts at most `limit` threads, as under a limit of the system.
inline StartThread limited_threads(int limit) {
  return [left = std::make_shared<int>(limit)](ThreadBody body) {
    if ((*left)-- == 0) {
      throw std::runtime_error("no further thread");
    }
    return start_thread(std::move(body));
  };
}

}  // namespace sluice::testing
